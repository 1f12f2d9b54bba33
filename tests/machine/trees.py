"""The kernel's tree of CPUs and NUMA nodes, as it lies under /sys/devices/system."""

from pathlib import Path

from scalestudy.features.topology.units import ranges


def write(file: Path, text: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def tree(root: Path, *, packages: int, nodes: int, caches: int, cores: int, threads: int) -> Path:
    """`packages` of `nodes` of `caches` of `cores` of `threads`, numbered as Linux does on x86:
    first one thread of every core, then the second ones.
    """
    total = packages * nodes * caches * cores
    for core in range(total):
        cache, node, package = core // cores, core // (cores * caches), core // (cores * caches * nodes)
        siblings = [core + thread * total for thread in range(threads)]
        shared = [
            each + thread * total
            for each in range(cache * cores, (cache + 1) * cores)
            for thread in range(threads)
        ]
        for cpu in siblings:
            folder = root / "cpu" / f"cpu{cpu}"
            write(folder / "topology" / "core_cpus_list", ranges(siblings))
            write(folder / "topology" / "physical_package_id", package)
            for index, (level, kind, of, size) in enumerate(
                [
                    (1, "Data", siblings, "32K"),
                    (2, "Unified", siblings, "512K"),
                    (3, "Unified", shared, "16384K"),
                ]
            ):
                where = folder / "cache" / f"index{index}"
                write(where / "level", level)
                write(where / "type", kind)
                write(where / "shared_cpu_list", ranges(of))
                write(where / "size", size)
            if cpu:  # the first CPU cannot be switched off, so it has no such file
                write(folder / "online", 1)
        listed = root / "node" / f"node{node}" / "cpulist"
        before = listed.read_text().strip() + "," if listed.exists() else ""
        write(listed, before + ranges(siblings))
    every = packages * nodes
    for node in range(every):
        row = [
            10 if other == node else 12 if other // nodes == node // nodes else 32 for other in range(every)
        ]
        write(root / "node" / f"node{node}" / "distance", " ".join(map(str, row)))
    (root / "cpu" / "cpufreq").mkdir()
    return root
