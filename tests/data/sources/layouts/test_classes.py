"""Images whose class is the name of their folder or part of their own name."""

import pytest


def test_classes_are_their_folders_and_what_lies_beside_is_told(tree, labelled, listed):
    root = tree("cat/{}.png", "Dog/{}.jpg", "notes.txt", "cat/Thumbs.db")
    assert labelled(root)["Dog/1.jpg"] == "Dog"
    assert listed(root).classes == ["Dog", "cat"]
    assert [each.names for each in listed(root).left_out] == [("notes.txt",), ("cat/Thumbs.db",)]


def test_a_class_in_validation_alone_is_named(tree, refused):
    root = tree("train/a/{}.png", "train/b/{}.png", "val/c/1.png")
    assert "'c'" in refused(root).received
    assert "val/c/1.png" in refused(root).received


def test_all_classes_without_an_image_are_named_at_once(tree, refused):
    root = tree("cat/{}.png", "dog/{}.png", "cow/notes.txt")
    for number in range(9):
        (root / f"empty{number}").mkdir()
    received = refused(root).received
    assert str(root / "cow") in received and str(root / "empty0") in received
    assert received.endswith("and 5 more")


def test_a_pattern_finds_the_class(tree, labelled):
    root = tree("cat.{}.jpg", "dog.{}.jpg")
    assert labelled(root, label_pattern=r"^(cat|dog)\.")["dog.2.jpg"] == "dog"


def test_files_without_a_class_are_named_in_training_and_left_out_of_a_test_set(tree, refused, listed):
    root = tree("train/cat.{}.jpg", "train/dog.{}.jpg", "test/{}.jpg")
    listing = listed(root, label_pattern="cat|dog")
    assert listing.classes == ["cat", "dog"]
    assert "3 left out (without a class in their names): test/1.jpg" in str(listing.left_out[0])
    assert "1.jpg" in refused(tree("train/1.jpg"), label_pattern="cat|dog").received


@pytest.mark.parametrize("other", ["gru\u0308n", "gr\u00fcn ", "gr\u00fcn\u200b"])
def test_classes_that_look_the_same_are_refused(tree, refused, other):
    root = tree("gr\u00fcn/{}.png", f"{other}/{{}}.png", "red/{}.png")
    assert ascii(other) in refused(root).received


def test_letters_that_look_different_are_classes_of_their_own(tree, listed):
    assert listed(tree("m2/{}.png", "m\u00b2/{}.png")).classes == ["m2", "m\u00b2"]
