"""Tabular regression: progression of diabetes after a year, from ten measurements of 442 patients.

The set is scikit-learn's (B. Efron et al., Least Angle Regression, Annals of Statistics 2004); it needs no
network access. Each number and the category are separate inputs, like the columns of a table.
"""

from typing import Any

import keras
from keras import layers

train = {"epochs": 60, "batch_size": 32, "learning_rate": 0.01}

NUMBERS = ("age", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


def read(data: Any) -> Any:
    """Return the columns of the table, and the progression of the disease, a number."""
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 (only to read)

    table = load_diabetes(scaled=False)
    columns = dict(zip(table.feature_names, table.data.T, strict=True))
    numbers = {name: columns[name].astype("float32") for name in NUMBERS}
    sex = ["female" if value == 1 else "male" for value in columns["sex"]]
    return numbers | {"sex": sex}, table.target.astype("float32")


def model(data: Any) -> keras.Model:
    """Build two dense layers after the scaled numbers and the embedded category."""
    inputs = {
        name: keras.Input(column.shape, name=name, dtype=column.dtype)
        for name, column in data.inputs.items()
    }
    numbers = [
        _scaled(layers.Reshape((1,))(inputs[name]), data.inputs[name])
        for name in NUMBERS
    ]
    sex = layers.Embedding(len(data.inputs["sex"].vocabulary), 2)(inputs["sex"])
    x = layers.Concatenate()([*numbers, sex])
    for units in (32, 16):
        x = layers.Dense(units, activation="relu")(x)
    return keras.Model(
        inputs, layers.Dense(1, bias_initializer=keras.initializers.Constant(150.0))(x)
    )


def _scaled(number: Any, column: Any) -> Any:
    """Scale from the range of the column to -1..1."""
    scale = 2 / (column.highest - column.lowest)
    return layers.Rescaling(scale, offset=-1 - scale * column.lowest)(number)


loss = "mean_squared_error"
metrics = ["r2", "mae"]
