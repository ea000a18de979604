"""The pytest plugin: `--mgpu-device`, the fixture `mgpu` and the mark `mgpu` (docs/ci.md).

pytest imports this file wherever mgpu_rt is installed. The plugin therefore imports mgpu_rt's other
modules only when a test or an option requests a device.
"""

from __future__ import annotations

import pytest

_MARK = (
    "mgpu(*devices, timeout=None, errors=False): the test runs on --mgpu-device, in a process of "
    "its own. It is skipped on a device that is none of `devices`. It fails after `timeout` "
    "seconds, or where a call fails, unless `errors` is true."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mgpu", "a GPU, or an emulated one (mgpu_rt)")
    group.addoption(
        "--mgpu-device",
        metavar="DEVICE",
        help="Run pytest on a device: auto, hip, cuda, softgpu, or the name of an emulated device "
        "such as gfx942. The fixture and the mark mgpu need it.",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> object:
    """Executes pytest in the environment of the named device, before pytest captures its output."""
    if word := early_config.known_args_namespace.mgpu_device:
        from mgpu_rt._testing import device

        device.enter(word)
    yield


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a marked test in its own process."""
    if item.get_closest_marker("mgpu") is None or not item.config.getoption("mgpu_device"):
        return None
    from mgpu_rt._testing import isolated

    return isolated.run(item, nextitem)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("mgpu") is not None:
        from mgpu_rt._testing import device

        device.check(item)


@pytest.fixture
def mgpu(request: pytest.FixtureRequest) -> object:
    """Runs programs on the device: `mgpu.run("./program").stdout`."""
    from mgpu_rt._testing import device, programs

    if not request.config.getoption("mgpu_device"):
        pytest.fail(device.NEEDS, pytrace=False)
    return programs.Programs()
