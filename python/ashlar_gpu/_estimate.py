"""estimate: the memory of a run before it starts, from the model's description."""

import json
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ashlar_gpu import _page, _program
from ashlar_gpu._answer import with_page
from ashlar_gpu._decode import decode
from ashlar_gpu._errors import Error, kind_of
from ashlar_gpu._explain import Size
from ashlar_gpu._sources import Path
from ashlar_gpu.results.estimate import Estimate


def estimate(model: Union[Path, Mapping[str, Any], int, Any], *, batch: Optional[int] = None,
             seq: Optional[int] = None, precision: Optional[str] = None, optimizer: Optional[str] = None,
             attention: Optional[str] = None, checkpointing: bool = False, inference: bool = False,
             steps: Optional[int] = None, device: Optional[str] = None, capacity: Optional[Size] = None,
             conf: Optional[str] = None, torch: Optional[str] = None, transformers: Optional[str] = None,
             levers: bool = False, fit: Union[Size, bool, None] = None, page: Optional[bool] = None,
             timeout: Optional[float] = None,
             **flags: Any) -> Estimate:
    """What a training or inference run will take.

    `model` is a path to a config.json or model file, the same as a dict, a config of transformers, a model of
    transformers or any torch.nn.Module (of which names and shapes are taken), or a number of parameters. The keywords
    are the flags of `ashlar estimate` (ashlar guide estimate), with _ for -; those not named here as well. `page`: as
    for explain. Raises Error.

        ashlar_gpu.estimate("config.json", batch=8, seq=1024, device="A100-80GB").interval
    """
    asked = _program.flags(batch=batch, seq=seq, precision=precision, optimizer=optimizer, attention=attention,
                                checkpointing=checkpointing, inference=inference, steps=steps, device=device,
                                capacity=capacity, conf=conf, torch=torch, transformers=transformers, levers=levers,
                                fit=fit, **flags)
    try:
        return _estimated(_input_of(model), asked, timeout, _page.wanted(page))
    except Error as error:  # a model that the program cannot run dry has names and shapes all the same
        if not hasattr(model, "named_parameters") or not any(word in str(error) for word in ("model_type", "architect")):
            raise
        return _estimated(_listed(model), asked, timeout, _page.wanted(page))


Input = Tuple[str, Optional[bytes]]  # an argument of the program, and its standard input


def _estimated(given: Input, asked: List[str], timeout: Optional[float], page: bool) -> Estimate:
    argument, stdin = given
    ran = _program.run(["estimate", argument, *asked], stdin=stdin, timeout=timeout, page=page)
    _program.answered(ran, "estimate")
    made = decode(Estimate, ran.json, text=ran.text, json=ran.json)
    return with_page(made, None if ran.page is None else _page.Page(ran.page))


def _listed(model: Any) -> Input:
    return "-", json.dumps({"model_type": "parameters", "parameters": _parameters_of(model)}).encode()


def _input_of(model: Any) -> Input:
    if isinstance(model, bool):
        raise Error("a truth value is no model: give a config.json, a dict, a config, a model or a number of parameters")
    if isinstance(model, int):
        return f"--parameters={model}", None
    if isinstance(model, str) or hasattr(model, "__fspath__"):
        return str(model), None
    return "-", json.dumps(_description_of(model), default=str).encode()


def _description_of(model: Any) -> Dict[str, Any]:
    if isinstance(model, Mapping):
        return dict(model)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict"):  # a model of transformers
        return {**config.to_dict(), "architectures": [type(model).__name__]}
    if hasattr(model, "to_dict"):  # a config of transformers
        return dict(model.to_dict())
    if hasattr(model, "named_parameters"):
        return dict(json.loads(_listed(model)[1] or b"{}"))
    raise Error(f"{kind_of(model)} is no model: give a config.json, a dict, a config, a model or a number of "
                "parameters")


def _parameters_of(model: Any) -> List[Dict[str, Any]]:
    return [{"name": name, "shape": list(one.shape)} for name, one in model.named_parameters()]
