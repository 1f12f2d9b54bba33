"""Figures as pictures: what is cut off where letters are wider."""

from scalestudy.report.images import with_room

DRAWN = (
    '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="marks" width="728" height="236"'
    ' viewBox="0 0 728 236"><rect width="728" height="236" fill="#FFFFFF"/>'
    '<g fill="none" transform="translate(100,83)"><text>horovod × 2</text></g></svg>'
)


def test_labels_have_room_for_wider_letters_on_ground_of_the_same_colour():
    # A fifth of the 100 pixels on the left, and some on the right.
    assert with_room(DRAWN).startswith(
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="marks" width="779" height="236"'
        ' viewBox="-22 0 779 236"><rect x="-22" width="779" height="236" fill="#FFFFFF"/>'
    )


def test_a_drawing_of_another_form_stays_as_it_is():
    assert with_room("<svg><path/></svg>") == "<svg><path/></svg>"
