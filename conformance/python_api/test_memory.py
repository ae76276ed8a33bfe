"""Tests of GPU memory as a project would have them; the last ones fail, and say why."""
import pytest
import torch


@pytest.fixture
def model():
    return torch.nn.Linear(4096, 4096).cuda()  # 64 MiB and a little


@pytest.fixture(scope="module")
def weights():
    return torch.empty(100 << 20, dtype=torch.uint8, device="cuda")


def step(model, batch):
    model(torch.randn(batch, 4096, device="cuda")).sum().backward()


@pytest.mark.fits("2GiB")
@pytest.mark.parametrize("batch", [8, 4096])
def test_a_step_fits(model, batch):
    step(model, batch)


@pytest.mark.fits("T4")
def test_on_a_card_by_name(model, weights):
    assert torch.cuda.get_device_name() .endswith("T4")
    assert weights.is_cuda


@pytest.mark.max_reserved("1GiB")
def test_holds_little(model):
    step(model, 64)


@pytest.mark.oom_at(2)
def test_halves_its_batch(model):
    batch, batches = 8192, []
    while True:
        batches.append(batch)
        try:
            step(model, batch)
            break
        except torch.cuda.OutOfMemoryError:
            batch //= 2
    assert batches == [8192, 4096]


def test_without_a_mark():
    assert not torch.cuda.is_available()


@pytest.mark.fits("256MiB", context="100MiB")
@pytest.mark.parametrize("batch", [8192])
def test_bad_does_not_fit(model, batch):
    step(model, batch)


@pytest.mark.fits("256MiB", context="100MiB")
def test_bad_catches_what_does_not_fit(model):
    try:
        step(model, 8192)
    except torch.cuda.OutOfMemoryError:
        pass


@pytest.mark.max_reserved("64MiB")
def test_bad_holds_much(model):
    step(model, 64)


@pytest.mark.fits("2GiB")
def test_bad_uses_no_device():
    pass


@pytest.mark.oom_at(50)
def test_bad_nothing_fails(model):
    step(model, 8)


@pytest.mark.fits("2GiB")
def test_bad_by_itself(model):
    assert model.weight.shape == (1, 1)
