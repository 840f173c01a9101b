"""conftest: eight CPU devices, and fixtures."""
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(scope="session")
def devices():
    return jax.devices()


@pytest.fixture(params=["pmap", "vmap"])
def transform(request):
    return getattr(jax, request.param)


@pytest.fixture
def rows(devices):
    return np.arange(float(len(devices)))


@pytest.fixture
def placed(rows, devices):
    return jax.device_put_sharded(list(rows), devices)  # finds: device-put-stackers-gone


@pytest.fixture
def old_pmap():
    with jax.config.jax_pmap_shmap_merge(False):  # finds: merge-option-cannot-be-asked
        yield jax.pmap


def pytest_configure(config):
    config.addinivalue_line("markers", "multidevice: needs several devices")
