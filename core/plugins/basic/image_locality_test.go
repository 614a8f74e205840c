// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// Two nodes, as in upstream's scenarios: an image on one of them counts half its size. The score runs from 23 MiB to
// 1000 MiB per container. Mutants: image-*.
func TestImageLocality(t *testing.T) {
	w := plugintest.NewCluster().With(
		plugintest.Node("one", plugintest.HasImage("red:40", 40), plugintest.HasImage("red:300", 300), plugintest.HasImage("red:2000", 2000), plugintest.HasImage("shared:500", 500)),
		plugintest.Node("two", plugintest.HasImage("blue:250", 250), plugintest.HasImage("shared:500", 500)))
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
		{"two images here, one there", plugintest.Pod("p", plugintest.Image("red:40"), plugintest.Image("red:300")), 100 * (170 - 23) / (2000 - 23), 0},
		{"an image below the floor", plugintest.Pod("p", plugintest.Image("red:40")), 0, 0},
		// 2000/2 = 1000 is the ceiling for one container
		{"a large image", plugintest.Pod("p", plugintest.Image("red:2000")), 100, 0},
		{"a large image among two containers", plugintest.Pod("p", plugintest.Image("red:2000"), plugintest.Image("none:1")), 100 * (1000 - 23) / (2000 - 23), 0},
		{"an image that both have counts in full", plugintest.Pod("p", plugintest.Image("shared:500")), 100 * (500 - 23) / (1000 - 23), 100 * (500 - 23) / (1000 - 23)},
		{"the same image twice counts twice", plugintest.Pod("p", plugintest.Image("shared:500"), plugintest.Image("shared:500")), 100 * (1000 - 23) / (2000 - 23), 100 * (1000 - 23) / (2000 - 23)},
		{"init containers count", plugintest.Pod("p", plugintest.Image("none:1"), initImage), 100 * (500 - 23) / (2000 - 23), 100 * (500 - 23) / (2000 - 23)},
		// 300/2 = 150 of 23 to 2000: a volume is a source of images, as a container is
		{"image volumes count", plugintest.Pod("p", plugintest.Image("none:1"), volume), 100 * (150 - 23) / (2000 - 23), 0},
		{"nobody has it", plugintest.Pod("p", plugintest.Image("none:1")), 0, 0},
		{"no tag means latest", plugintest.Pod("p", plugintest.Image("red")), 0, 0},
	} {
		for name, want := range map[string]int64{"one": story.one, "two": story.two} { // order: each node alone
			if got, ok := w.Score(t, ImageLocality{}, story.pod, name); !ok || got != want {
				t.Errorf("%s: node %s scores %d (scored: %v), want %d", story.name, name, got, ok, want)
			}
		}
	}
	if got, _ := plugintest.NewCluster().With(plugintest.Node("n", plugintest.HasImage("red:latest", 1000))).Score(t, ImageLocality{}, plugintest.Pod("p", plugintest.Image("red")), "n"); got != 100 {
		t.Errorf("red without a tag on a node with red:latest scores %d, want 100", got)
	}
}

// The version stays while no node holds an image of the pod, changes when one appears, and changes with the nodes then.
func TestImageLocalityVersion(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("a"))
	s := w.Store.Snapshot()
	score := ImageLocality{}.PrepareScore(s, w.Intake.Pod(plugintest.Pod("p", plugintest.Image("app:1"))))
	none := plugin.VersionOf(score, s)
	w.With(plugintest.Node("b", plugintest.HasImage("other:1", 100)))
	if plugin.VersionOf(score, s) != none {
		t.Errorf("an image of others changes the version")
	}
	w.With(plugintest.Node("c", plugintest.HasImage("app:1", 100)))
	some := plugin.VersionOf(score, s)
	if some == none {
		t.Errorf("the pod's image appears and the version stays")
	}
	w.With(plugintest.Node("d"))
	if plugin.VersionOf(score, s) == some {
		t.Errorf("a node more, which changes the share of nodes with the image, and the version stays")
	}
}
