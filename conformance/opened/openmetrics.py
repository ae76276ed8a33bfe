"""Reads metrics with prometheus_client's own parser of OpenMetrics and prints their samples as JSON.

    openmetrics.py FILE      [["ashlar_part_bytes", {"device": "0", "part": "live"}, 123.0], ...]
"""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with open(sys.argv[1], encoding='utf-8') as metrics_file:
    families = list(text_string_to_metric_families(metrics_file.read()))
print(json.dumps([[sample.name, sample.labels, sample.value] for family in families for sample in family.samples]))
