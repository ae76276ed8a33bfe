"""Which rows there are, and which of them a sample takes."""
import random

import advice
import attached
import big
import captures
import cards
import causes
import cxx_integrations
import driver
import estimator
import fitted_rows
import holders
import llama
import megatron_rows
import nvcc_rows
import opened_rows
import others
import plugin
import policy
import programs
import published
import python_integrations
import python_api_rows
import ranked_rows
import recording
import releases as other_releases
import reported
import routing_rows
import sleep_rows
import small_values
import tuning
import under
import unseen_rows
import value_rows
import what_if

USUAL = '2.14.1'


def releases(named, is_all):
    if named:
        return named.split(',')
    return [USUAL] + (other_releases.OTHERS if is_all else [])


def rows(of_releases, is_all):
    """`is_all`: also those that no sample takes."""
    plain = (programs, small_values, reported, what_if, big, cards, recording, attached, published, others, nvcc_rows, llama,
             under, python_integrations, cxx_integrations, driver, python_api_rows, opened_rows, advice, holders, unseen_rows, causes, policy,
             tuning, megatron_rows, fitted_rows, ranked_rows, routing_rows, value_rows, sleep_rows)
    out = captures.rows(of_releases)
    for module in plain:
        out += module.rows()
    out += plugin.rows(of_releases)
    return out + other_releases.rows(of_releases) + estimator.rows(is_all)


def sample(all_rows, seed, seconds):
    """Usual rows of every group by turns, in an order that the seed makes, until the time is used up."""
    shuffled = random.Random(seed)
    groups = {}
    for row in sorted(all_rows, key=lambda row: (row.group, row.name)):
        if not row.is_usual or row.is_measured:
            continue
        groups.setdefault(row.group, []).append(row)
    for group in groups.values():
        shuffled.shuffle(group)
    chosen, left = [], seconds
    while any(groups.values()):
        for group in groups.values():
            row = group.pop() if group else None
            if row is not None and row.seconds <= left:
                chosen.append(row)
                left -= row.seconds
    return [row for row in all_rows if row in chosen]


def command(flags):
    """How the table is made again."""
    words = ['tools/test real'] + (['--all'] if flags.all else [])
    for name in ('only', 'named', 'releases', 'seed'):
        value = getattr(flags, name)
        if value not in ('', None):
            words.append(f'--{name} {value}')
    words += ['--results FILE'] if flags.results else []
    return ' '.join(words + [f'--table {flags.table}'])
