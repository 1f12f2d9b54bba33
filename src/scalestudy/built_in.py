"""What this package itself registers, in the form of entry points, in the order in which it is shown.

Registries are below what they find, so only this file, which belongs to no package, names both.
"""

BUILT_IN = {
    "scalestudy.engines": {
        "tensorflow": "scalestudy.engines.tensorflow.traits:ENGINE",
        "torch": "scalestudy.engines.torch.traits:ENGINE",
    },
    "scalestudy.launchers": {
        "local": "scalestudy.launch.launchers:LOCAL",
        "hosts": "scalestudy.launch.launchers:HOSTS",
        "slurm": "scalestudy.launch.queue.launchers:SLURM",
        "pbs": "scalestudy.launch.queue.launchers:PBS",
    },
    "scalestudy.tasks": {
        "unet": "scalestudy.tasks.unet",
        "cnn": "scalestudy.tasks.cnn",
        "resnet50": "scalestudy.tasks.resnet50",
        "torch_unet": "scalestudy.tasks.torch_unet",
        "torch_cnn": "scalestudy.tasks.torch_cnn",
    },
    "scalestudy.applications": {"keras": "scalestudy.tasks.applications"},
    "scalestudy.sources": {
        "indents": "scalestudy.data.sources.indents:Indents",
        "digits": "scalestudy.data.sources.arrays:Digits",
    },
    "scalestudy.sections": {
        "imported": "scalestudy.features.imported.assumptions:section",
        "diagnosis": "scalestudy.features.diagnose.diagnosis_section:diagnosis_section",
        "samples": "scalestudy.report.sections:samples_section",
        "models": "scalestudy.report.sections:models_section",
        "costs": "scalestudy.report.sections:costs_section",
    },
    "scalestudy.modes": {
        "ablation": "scalestudy.features.diagnose.ablation:run_ablation",
    },
    "scalestudy.rank_commands": {
        "check": "scalestudy.features.check.check_ranks:check_rank",
    },
}
