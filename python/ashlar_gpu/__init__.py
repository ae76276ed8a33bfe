"""Ashlar explains GPU memory, and is an allocator of it. The distribution on PyPI is `ashlar-gpu`."""
