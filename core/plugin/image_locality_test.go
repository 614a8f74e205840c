// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Two nodes, as in upstream's stories: an image on one of them counts half its size. The score runs from 23 MiB to
// 1000 MiB per container. Mutants: image-*.
func TestImageLocality(t *testing.T) {
	w := newWorld().with(
		node("one", holds("red:40", 40), holds("red:300", 300), holds("red:2000", 2000), holds("shared:500", 500)),
		node("two", holds("blue:250", 250), holds("shared:500", 500)))
	volume := func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "red:300"}}}}
	}
	initImage := func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{{Image: "shared:500"}} }
	for _, story := range []struct {
		name     string
		pod      *v1.Pod
		one, two int64
	}{
		// (40+300)/2 = 170; 170 and 125 of 23 to 2000
		{"two images here, one there", pod("p", image("red:40"), image("red:300")), 100 * (170 - 23) / (2000 - 23), 0},
		{"an image below the floor", pod("p", image("red:40")), 0, 0},
		// 2000/2 = 1000 is the ceiling for one container
		{"a large image", pod("p", image("red:2000")), 100, 0},
		{"a large image among two containers", pod("p", image("red:2000"), image("none:1")), 100 * (1000 - 23) / (2000 - 23), 0},
		{"an image that both have counts in full", pod("p", image("shared:500")), 100 * (500 - 23) / (1000 - 23), 100 * (500 - 23) / (1000 - 23)},
		{"the same image twice counts twice", pod("p", image("shared:500"), image("shared:500")), 100 * (1000 - 23) / (2000 - 23), 100 * (1000 - 23) / (2000 - 23)},
		{"init containers count", pod("p", image("none:1"), initImage), 100 * (500 - 23) / (2000 - 23), 100 * (500 - 23) / (2000 - 23)},
		// 300/2 = 150 of 23 to 1000: a volume is no container
		{"image volumes count", pod("p", image("none:1"), volume), 100 * (150 - 23) / (1000 - 23), 0},
		{"nobody has it", pod("p", image("none:1")), 0, 0},
		{"no tag means latest", pod("p", image("red")), 0, 0},
	} {
		for name, want := range map[string]int64{"one": story.one, "two": story.two} { // order: each node alone
			if got, ok := w.scores(t, ImageLocality{}, story.pod, name); !ok || got != want {
				t.Errorf("%s: node %s scores %d (scored: %v), want %d", story.name, name, got, ok, want)
			}
		}
	}
	if got, _ := newWorld().with(node("n", holds("red:latest", 1000))).scores(t, ImageLocality{}, pod("p", image("red")), "n"); got != 100 {
		t.Errorf("red without a tag on a node with red:latest scores %d, want 100", got)
	}
}

// The epoch stays while no node holds an image of the pod, changes when one appears, and changes with the nodes then.
func TestImageLocalityEpoch(t *testing.T) {
	w := newWorld().with(node("a"))
	s := w.store.Snapshot()
	score := ImageLocality{}.PrepareScore(s, w.intake.Pod(pod("p", image("app:1"))))
	none := score.Epoch(s)
	w.with(node("b", holds("other:1", 100)))
	if score.Epoch(s) != none {
		t.Errorf("an image of others changes the epoch")
	}
	w.with(node("c", holds("app:1", 100)))
	some := score.Epoch(s)
	if some == none {
		t.Errorf("the pod's image appears and the epoch stays")
	}
	w.with(node("d"))
	if score.Epoch(s) == some {
		t.Errorf("a node more, which changes the share of nodes with the image, and the epoch stays")
	}
}
