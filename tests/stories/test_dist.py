"""The packages of a release: what they contain, and that they run without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    [source] = folder.glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_packages_have_all_files_of_the_package_and_nothing_else(packages):
    wheel, source = packages
    package = ROOT / "src"
    wanted = {
        p.relative_to(package).as_posix()
        for p in (package / "shelduck").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    with zipfile.ZipFile(wheel) as made:
        found = {n for n in made.namelist() if ".dist-info/" not in n}
    assert found == wanted
    with tarfile.open(source) as made:
        names = {n.split("/", 1)[1] for n in made.getnames()}
    assert names == {f"src/{n}" for n in wanted} | {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["wheel", "source"])
def test_the_demo_runs_from_a_package(packages, tmp_path, which):
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    target = tmp_path / "installed"
    command = [*install, "--target", str(target), str(packages[which])]
    subprocess.run(command, check=True, capture_output=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    told = subprocess.run(
        [sys.executable, "-m", "shelduck.cli", "demo", "--rows", "5000"],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(target)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "writes lost" in told
    where = [sys.executable, "-c", "import shelduck; print(shelduck.__file__)"]
    env = os.environ | {"PYTHONPATH": str(target)}
    shown = subprocess.run(
        where, env=env, cwd=elsewhere, check=True, capture_output=True, text=True
    )
    assert shown.stdout.startswith(str(target))
