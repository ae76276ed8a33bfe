"""Holds JSON to a JSON schema: schema.py FILE SCHEMA"""
import json
import sys

import jsonschema

documents = []
for path in sys.argv[1:]:
    with open(path, encoding='utf-8') as json_file:
        documents.append(json.load(json_file))
jsonschema.validate(*documents)
print('valid')
