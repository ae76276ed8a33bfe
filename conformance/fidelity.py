"""How much of a history the twin puts where PyTorch did."""


def of(bench, history):
    """(text for the table, whether it is all): allocations at their address, segments, the state at the end."""
    told = bench.replay(history)['fidelity']
    is_all = (told['matched'] == told['total'] and told['segments_matched'] == told['segments_total']
              and told['final_state_matches'])
    return f'{told["matched"]:,} of {told["total"]:,}', is_all


def expect_all(bench, run, verdict):
    """Of every history that the run left: one a process."""
    verdict.expect(run.histories, 'it left no history')
    texts = []
    for history in run.histories:
        text, is_all = of(bench, history)
        verdict.expect(is_all, f'replay of {history.rsplit("/", 1)[-1]}: {text}')
        if text != '0 of 0':  # a worker that allocated nothing
            texts.append(text)
    verdict.cells['replayed'] = '; '.join(texts)


def expect_addresses(bench, run, verdict):
    """The same of addresses alone: where a launcher ends the program's variables before the history is taken, a pool that
    goes with them reads as an emptied cache."""
    verdict.expect(run.histories, 'it left no history')
    for history in run.histories:
        told = bench.replay(history)['fidelity']
        verdict.equal(f'addresses of {history.rsplit("/", 1)[-1]}', told['matched'], told['total'])
    verdict.cells['replayed'] = 'all addresses'
