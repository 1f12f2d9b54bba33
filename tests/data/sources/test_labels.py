"""Images whose class is the name of their folder, part of their own name, or in a table."""

import pytest


def test_classes_are_their_folders_in_order_and_what_lies_beside_is_told(
    tree, labelled, listed
):
    root = tree(
        "cat/{}.png",
        "Dog/{}.jpg",
        "10/1.png",
        "9/deep/1.png",
        "notes.txt",
        "cat/Thumbs.db",
    )
    assert labelled(root)["Dog/1.jpg"] == "Dog"
    assert labelled(root)["9/deep/1.png"] == "9"
    assert listed(root).classes == ["9", "10", "Dog", "cat"]
    assert [sample.target for sample in listed(root).samples][:3] == ["9", "10", "Dog"]
    assert [each.names for each in listed(root).left_out] == [("notes.txt",)]


def test_a_class_in_validation_alone_is_named(tree, refused, listed):
    root = tree("train/a/{}.png", "train/b/{}.png", "val/b/1.png", "extra/1.png")
    assert listed(root).given == {"train": (0, 6), "validation": (6, 7)}
    received = refused(tree("val/c/1.png")).received
    assert "'c'" in received and "val/c/1.png" in received


@pytest.mark.parametrize("other", ["no_mask", "with_mask"])
def test_classes_named_like_masks_stay_classes(tree, labelled, other):
    assert labelled(tree("mask/{}.png", f"{other}/{{}}.png"))["mask/1.png"] == "mask"


LABELS = "image_id,label\na1.png,cat\na2.png,dog\na3.png,cat\n"


@pytest.fixture
def table(tree):
    """Write a folder with `img/a1.png` to `a3.png` and a table."""

    def make(text=LABELS, name="labels.csv"):
        root = tree("img/a{}.png")
        (root / name).write_text(text)
        return root

    return make


def test_files_and_classes_are_told_by_the_names_of_columns(table, listed, labelled):
    root = table()
    assert labelled(root) == {
        "img/a1.png": "cat",
        "img/a2.png": "dog",
        "img/a3.png": "cat",
    }
    assert listed(root).understood == (
        "labels.csv: files in the column 'image_id', classes in the column 'label'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "file,label\nA1.PNG,1\nimg/A2.png,2\na3.png,10\n",
        "id,breed,label\na1,x,1\na2,y,2\na3,z,10\n",
        "Filename;Class\nimg/a1.png;1\nimg/a2.png;2\nimg/a3.png;10\n",
        "path\ttarget\n/home/me/img/a1.png\t1\n/home/me/img/a2.png\t2\n/home/me/img/a3.png\t10\n",
        "\ufefffile, category \n a1.png , 1\n a2.png,2\na3.png,10\n",
        'file,class\r\n"a1.png","1"\r\n"a2.png","2"\r\n"a3.png","10"\r\n',
    ],
)
def test_extensions_folders_separators_and_spaces_may_be_as_they_are(
    table, listed, labelled, text
):
    root = table(text)
    assert labelled(root) == {"img/a1.png": "1", "img/a2.png": "2", "img/a3.png": "10"}
    assert listed(root).classes == ["1", "2", "10"]


def test_columns_can_be_said(table, labelled, refused):
    root = table("image,label,grade\na1.png,x,1\na2.png,x,2\na3.png,x,1\n")
    assert labelled(root, label_column="grade")["img/a2.png"] == "2"
    assert "'image', 'label', 'grade'" in refused(root, label_column="grades").received


def test_images_in_no_row_are_left_out_as_kaggles_test_set_is(tree, listed, refused):
    root = tree("train_images/{}.jpg", "test_images/t{}.jpg", "notes.txt")
    (root / "train.csv").write_text("image_id,label\n1.jpg,0\n2.jpg,1\n3.jpg,1\n")
    assert {sample.image.parent.name for sample in listed(root).samples} == {
        "train_images"
    }
    assert [(each.count, each.names[0]) for each in listed(root).left_out] == [
        (3, "test_images/t1.jpg"),
        (1, "notes.txt"),
    ]
    (root / "sample_submission.csv").write_text("image_id,label\n1.jpg,4\n")
    assert "Name the table as the source" in refused(root).action
    assert len(listed(root / "train.csv").samples) == 3


def test_a_table_without_such_columns_is_no_source(table, refused):
    root = table("a,b\n1,2\n", "list.csv")
    assert "'a', 'b'" in refused(root / "list.csv").received


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a4.png,cat", "a4.png"),
        ("a1.png,dog", "cat and dog for"),
        ("a3.png,", "a3.png (no class)"),
        (",cat", "a row without a file"),
        ("a3.png", "a3.png (no class)"),
        ("a3.png,cat, black", "more cells than columns"),
    ],
)
def test_rows_that_cannot_be_samples_are_named(table, refused, row, told):
    assert (
        told in refused(table(f"file,label\na1.png,cat\na2.png,dog\n{row}\n")).received
    )


def test_a_table_that_is_not_utf8_or_of_headings_alone_is_refused(tree, refused):
    root = tree("a1.png", "a2.png")
    (root / "labels.csv").write_text(
        "file,label\na1.png,cat\na2.png,ros\xe9\n", encoding="latin-1"
    )
    assert str(root / "labels.csv") in refused(root).received
    (root / "labels.csv").write_text("file,label\n")
    assert "none in" in refused(root).received


def test_two_files_of_one_name_are_refused_where_nothing_tells_them_apart(
    table, tree, refused
):
    root = table()
    tree("other/a1.png")
    assert "img/a1.png and" in refused(root).received


def test_a_table_beside_folders_of_classes_is_ambiguous_and_a_source_or_key_decides(
    tree, refused, labelled
):
    root = tree("cat/{}.png", "dog/d{}.png")
    (root / "labels.csv").write_text("file,label\n1.png,old\nd1.png,young\n")
    assert "Name the table as the source" in refused(root).action
    assert labelled(root, label_column="label") == {
        "cat/1.png": "old",
        "dog/d1.png": "young",
    }
    (root / "labels.csv").unlink()
    assert labelled(root)["cat/1.png"] == "cat"


def test_columns_of_a_folder_without_a_table_are_refused(tree, refused):
    error = refused(tree("a/{}.png", "b/{}.png"), label_column="patient")
    assert (
        error.received == "`label_column`"
        and "one folder of images for each class" in error.expected
    )
