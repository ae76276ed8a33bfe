"""Sizes and times as the table prints them."""


def mib(size):
    return f'{size / 2**20:,.0f} MiB'


def gib(size):
    return f'{size / 2**30:,.2f} GiB'


def gb(size):
    return f'{size / 1e9:,.2f} GB'


def seconds(value):
    return f'{value:.1f} s'
