"""Stages of torch.distributed.pipelining, which tell each other the shapes of what they will send.

A stage hears the shapes of its inputs from the stage before, which has run. Those of its outputs' gradients come from the
stage after, which has not: they are taken as the outputs' own, which is what PyTorch itself takes where a program gives
the shapes. Where a rank has several stages, the one before its next stage has not run either: what comes from there is
taken to be like what this rank's own stage before it sends.
"""

import functools


def install(stage_module):
    """A release whose stages ask the stage before alone has none of these."""
    base = stage_module.PipelineStage
    derive = getattr(stage_module, "_derive_grad_metas", None)
    back, ahead = (getattr(stage_module, name, None) for name in ("_StageBackwardMeta", "_StageForwardMeta"))
    if hasattr(base, "_recv_meta") and hasattr(base, "_send_meta") and None not in (derive, back, ahead):
        sent = []
        base._send_meta = _sending(base._send_meta, ahead, sent)
        base._recv_meta = _receiving(base._recv_meta, derive, back, sent)
    if hasattr(base, "_warmup_forward_vote") and hasattr(base, "_warmup_backward_result"):
        _vote_alike(base)


def _sending(send, ahead, sent):
    @functools.wraps(send)
    def _send_meta(self, meta, dst_stage):
        if isinstance(meta, ahead):
            sent.append(meta)
        return send(self, meta, dst_stage)

    return _send_meta


def _receiving(receive, derive, back, sent):
    @functools.wraps(receive)
    def _recv_meta(self, src_stage):
        if src_stage > self.stage_index and self._stage_meta.outputs:
            return back(backward_metas=derive(self._stage_meta.outputs))
        try:
            return receive(self, src_stage)
        except RuntimeError:
            if not sent:
                raise
            return sent[-1]

    return _recv_meta


def _vote_alike(base):
    """Stages vote whether all of them know their shapes: those after this one as those up to it."""
    forward, backward = base._warmup_forward_vote, base._warmup_backward_result

    @functools.wraps(forward)
    def _warmup_forward_vote(self, *args, **kwargs):
        self._ashlar_vote = forward(self, *args, **kwargs)
        return self._ashlar_vote

    @functools.wraps(backward)
    def _warmup_backward_result(self, *args, **kwargs):
        result = backward(self, *args, **kwargs)
        vote, self._ashlar_vote = self._ashlar_vote, None
        return result if result is None else result.copy_(vote)

    base._warmup_forward_vote, base._warmup_backward_result = _warmup_forward_vote, _warmup_backward_result
