from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ivm_core.engine import delta_jars as jars
from ivm_core.engine.class_archive import ABANDONED_AFTER_SECONDS, ClassArchive
from ivm_core.engine.java_home import inspect_java
from ivm_core.engine.local_spark import local_spark, spark_class_archive
from ivm_core.engine.project_cache import CACHE_VARIABLE, cache_folder
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
NOWHERE = "127.0.0.1"
WITHOUT_NETWORK = {
    "DEFAULT_ARTIFACT_REPOSITORY": f"http://{NOWHERE}:9/",
    "JAVA_TOOL_OPTIONS": " ".join(
        f"-D{scheme}.proxyHost={NOWHERE} -D{scheme}.proxyPort=9" for scheme in ("http", "https")
    ),
}
USES_DELTA = """
from ivm_core.engine.local_spark import local_spark
spark = local_spark()
spark.range(5).write.format("delta").saveAsTable("numbers")
settings = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
print("settings", *(spark.conf.get(name) for name in settings))
print("rows", spark.table("numbers").count())
"""
USES_A_BROKEN_ARCHIVE = """
from ivm_core.engine.local_spark import local_spark, spark_class_archive
archive = spark_class_archive()
archive.folder.mkdir(parents=True, exist_ok=True)
(archive.folder / f"{archive.stem}.jsa").write_bytes(b"not an archive" * 1000)
assert "SharedArchiveFile" in archive.jvm_options()[0]
print("rows", local_spark().range(3).count())
"""


def run_elsewhere(
    program: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python of its own, which stands in `folder`."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def test_starts_from_the_cache_without_network_and_leaves_nothing_behind(tmp_path: Path) -> None:
    jars.delta_jars()
    ran = run_elsewhere(USES_DELTA, tmp_path, HOME=str(tmp_path / "home"), **WITHOUT_NETWORK)
    assert "settings UTC true" in ran.stdout, ran.stderr
    assert "rows 5" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_starts_with_a_broken_class_archive_without_a_word_about_it(tmp_path: Path) -> None:
    cached = jars.delta_jars()[0].parent
    cache = tmp_path / "a cache with spaces"
    shutil.copytree(cached, cache / "jars" / cached.name)
    ran = run_elsewhere(USES_A_BROKEN_ARCHIVE, tmp_path, TIDEVIEW_CACHE=str(cache))
    assert "rows 3" in ran.stdout, ran.stderr
    assert "archive" not in ran.stderr.lower()


def test_the_active_session_is_returned(spark: SparkSession) -> None:
    spark.createDataFrame([], "x INT")  # makes it the active one
    assert local_spark(cores=1) is spark


def test_jars_that_cannot_be_resolved_are_refused_with_a_remedy(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(own_cache / "home"))
    for name, value in WITHOUT_NETWORK.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=r"could not be resolved[\s\S]*DEFAULT_ARTIFACT_REPOSITORY"):
        jars.delta_jars()
    assert list((own_cache / "jars").iterdir()) == []
    assert [left.name for left in own_cache.iterdir() if left.name.startswith("resolving")] == []


def test_two_that_need_the_jars_at_once_resolve_them_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def slow_ivy(work: Path) -> subprocess.CompletedProcess[str]:
        asked.append(work)
        time.sleep(0.3)
        resolved = work / "ivy" / "jars"
        resolved.mkdir(parents=True)
        for name in ("io.delta_delta-spark.jar", "com.fasterxml.jackson.core_jackson-core.jar"):
            (resolved / name).touch()
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(jars, "_ask_ivy", slow_ivy)
    answers: list[list[str]] = []
    both = [
        threading.Thread(target=lambda: answers.append([jar.name for jar in jars.delta_jars()]))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert answers == [["io.delta_delta-spark.jar"]] * 2
    assert len(asked) == 1
    assert sorted(left.name for left in own_cache.iterdir()) == ["jars", "jars.lock"]


def test_the_cache_is_where_it_was_asked_for(own_cache: Path) -> None:
    assert cache_folder() == own_cache


def test_without_java_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"has no bin/java[\s\S]*Install a Java 17"):
        spark_class_archive()


def test_java_that_is_too_old_is_refused_by_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.touch(mode=0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "is Java 1.8.0_392, and Spark 4 needs Java 17" in inspect_java().problem


class TestClassArchive:
    @pytest.fixture
    def archive(self, tmp_path: Path) -> ClassArchive:
        return ClassArchive.matching(tmp_path / "classes", "Java 17", [])

    def test_is_written_by_the_first_start_alone(self, archive: ClassArchive) -> None:
        assert archive.jvm_options()[0].startswith("-XX:ArchiveClassesAtExit=")
        assert archive.jvm_options() == []

    def test_is_not_used_before_its_header_is_written(self, archive: ClassArchive) -> None:
        self.candidate(archive, os.getpid()).write_bytes(bytes(4096))
        assert archive.jvm_options() == []
        assert not archive.is_ready()

    def test_is_put_in_place_when_finished(self, archive: ClassArchive) -> None:
        self.candidate(archive, os.getpid()).write_bytes(b"\xa8\xba\x0b\xf0" + bytes(4096))
        finished = archive.folder / f"{archive.stem}.jsa"
        assert archive.jvm_options()[0] == f"-XX:SharedArchiveFile={finished}"
        assert list(archive.folder.iterdir()) == [finished]

    def test_is_tried_again_when_its_maker_died_long_ago(self, archive: ClassArchive) -> None:
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        abandoned = self.candidate(archive, gone.pid)
        assert archive.jvm_options() == []
        long_ago = time.time() - ABANDONED_AFTER_SECONDS - 1
        os.utime(abandoned, (long_ago, long_ago))
        assert archive.jvm_options()[0].startswith("-XX:ArchiveClassesAtExit=")
        assert not abandoned.exists()

    def test_is_never_tried_again_once_given_up(self, archive: ClassArchive) -> None:
        archive.folder.mkdir(parents=True)
        archive.give_up()
        assert archive.jvm_options() == []

    def test_is_done_without_where_the_folder_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert ClassArchive.matching(tmp_path / "file" / "x", "Java 17", []).jvm_options() == []

    def test_differs_for_another_java_and_for_a_touched_jar(self, tmp_path: Path) -> None:
        jar = tmp_path / "a.jar"
        jar.touch()
        first = ClassArchive.matching(tmp_path, "Java 17", [jar])
        assert ClassArchive.matching(tmp_path, "Java 21", [jar]) != first
        os.utime(jar, (0, 0))
        assert ClassArchive.matching(tmp_path, "Java 17", [jar]) != first

    @staticmethod
    def candidate(archive: ClassArchive, maker: int) -> Path:
        archive.folder.mkdir(parents=True, exist_ok=True)
        made = archive.folder / f"{archive.stem}.{maker}.making"
        made.touch()
        return made
