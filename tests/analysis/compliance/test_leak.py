"""Signs that validation samples were trained on."""

import pytest

TITLE = "A sign of a leak"


def log(pairs: list[tuple[float, float]]) -> dict[str, str]:
    rows = [f"{epoch},{a},{b}" for epoch, (a, b) in enumerate(pairs)]
    return {"log_4.csv": "\n".join(["epoch,loss,val_loss", *rows])}


LOSSES = [0.9, 0.5, 0.3, 0.15, 0.08, 0.05, 0.03]


def test_losses_that_are_one_to_the_end_are_a_sign_and_no_proof(looked):
    found = looked(log([(loss, 1.01 * loss) for loss in LOSSES]))[TITLE]
    assert found.severity == "doubtful"
    assert "follows the training loss within 3 % to the end" in found.sentence
    assert "a sign, not a proof" in found.sentence
    assert found.where == "log_4.csv, lines 2-8"


def test_a_validation_loss_below_that_of_training_from_the_first_epoch_to_the_last_is_one(looked):
    assert "below the training loss" in looked(log([(loss, 0.8 * loss) for loss in LOSSES]))[TITLE].sentence


@pytest.mark.parametrize(
    "pairs",
    [
        [(loss, loss + 0.1) for loss in LOSSES],
        [(loss, 0.6 * loss if loss > 0.4 else 1.4 * loss) for loss in LOSSES],
        [(loss, loss) for loss in LOSSES[:4]],
        [(0.9 - 0.01 * k, 0.9 - 0.01 * k) for k in range(9)],
        [(float("nan"), 1.0)] * 9,
    ],
    ids=["apart", "early only", "few epochs", "hardly trained", "not finite"],
)
def test_other_curves_are_left_alone(looked, pairs: list[tuple[float, float]]):
    assert TITLE not in looked(log(pairs))
