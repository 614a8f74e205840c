// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// What near and far is worth: raw scores of a1 a2 b1 b2 off. Mutants: pod-affinity-score-one-way,
// pod-affinity-score-sign, pod-affinity-weight-one, pod-affinity-score-once, pod-affinity-hard-never.
func TestPodAffinityScores(t *testing.T) {
	web, zone := podsBy("host", "app", "web"), podsBy("zone", "app", "web")
	everySpace := &metav1.LabelSelector{}
	red := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	me := wears("app", "web")
	for name, c := range map[string]struct {
		more []any
		pod  *v1.Pod
		want []int64 // nil: not scored
	}{
		"nobody has preferences":             {pod: plugintest.Pod("p", me)},
		"likes near":                         {pod: plugintest.Pod("p", likesNear(7, zone)), want: []int64{7, 7, 0, 0, 0}},
		"likes far":                          {pod: plugintest.Pod("p", likesFar(7, zone)), want: []int64{-7, -7, 0, 0, 0}},
		"two likes":                          {pod: plugintest.Pod("p", likesNear(7, zone), likesNear(5, web)), want: []int64{12, 7, 0, 0, 0}},
		"each for itself":                    {pod: plugintest.Pod("p", likesNear(7, zone), likesNear(5, podsBy("zone", "app", "absent"))), want: []int64{7, 7, 0, 0, 0}},
		"likes and dislikes that cancel":     {pod: plugintest.Pod("p", likesNear(7, zone), likesFar(7, zone)), want: []int64{0, 0, 0, 0, 0}},
		"every pod counts":                   {more: []any{plugintest.Pod("web2", me, plugintest.OnNode("a2"))}, pod: plugintest.Pod("p", likesNear(7, zone)), want: []int64{14, 14, 0, 0, 0}},
		"all namespaces":                     {pod: plugintest.Pod("p", likesNear(7, ofSpacesWith(zone, everySpace))), want: []int64{7, 7, 7, 7, 0}},
		"namespaces selected":                {pod: plugintest.Pod("p", likesNear(7, ofSpacesWith(zone, red))), want: []int64{0, 0, 7, 7, 0}},
		"namespaces without labels":          {pod: plugintest.Pod("p", likesNear(7, ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))))},
		"nobody there":                       {pod: plugintest.Pod("p", likesNear(7, podsBy("zone", "app", "absent")))},
		"a key that no node has":             {pod: plugintest.Pod("p", likesNear(7, podsBy("rack", "app", "web")))},
		"a terminating pod":                  {more: []any{gone(plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("b2")))}, pod: plugintest.Pod("p", likesNear(7, podsBy("host", "app", "db"))), want: []int64{0, 0, 0, 7, 0}},
		"a pod on a node that is not there":  {more: []any{plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("lost"))}, pod: plugintest.Pod("p", likesNear(7, podsBy("host", "app", "db")))},
		"a pod on a node without the label":  {more: []any{plugintest.Pod("db", wears("app", "db"), plugintest.OnNode("off"))}, pod: plugintest.Pod("p", likesNear(7, podsBy("host", "app", "db")))},
		"liked by another":                   {more: []any{plugintest.Pod("fan", likesNear(9, zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, 9, 9, 0}},
		"disliked by another":                {more: []any{plugintest.Pod("foe", likesFar(9, zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, -9, -9, 0}},
		"liked by two":                       {more: []any{plugintest.Pod("fan", likesNear(9, zone), plugintest.OnNode("b2")), plugintest.Pod("fan2", likesNear(9, zone), plugintest.OnNode("b1"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, 18, 18, 0}},
		"liked twice":                        {more: []any{plugintest.Pod("fan", likesNear(9, zone), likesNear(9, zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, 18, 18, 0}},
		"liked as one of a namespace":        {more: []any{plugintest.Pod("fan", plugintest.InNamespace("bare"), likesNear(9, ofSpacesWith(web, red)), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", plugintest.InNamespace("other"), me), want: []int64{0, 0, 0, 9, 0}},
		"not liked as one without labels":    {more: []any{plugintest.Pod("fan", likesNear(9, ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", plugintest.InNamespace("other"), me)},
		"needed by another":                  {more: []any{plugintest.Pod("tail", wantsNear(zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, 3, 3, 0}},
		"needed twice":                       {more: []any{plugintest.Pod("tail", wantsNear(zone, web), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, 3, 6, 0}},
		"needing is not scored":              {pod: plugintest.Pod("p", wantsNear(zone))},
		"repelling is not scored":            {more: []any{plugintest.Pod("loner", wantsFar(zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me)},
		"both ways":                          {more: []any{plugintest.Pod("fan", likesNear(9, zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me, likesNear(7, web)), want: []int64{7, 0, 9, 9, 0}},
		"a weight of nothing is a score too": {pod: plugintest.Pod("p", likesNear(0, zone)), want: []int64{0, 0, 0, 0, 0}},
		"terms of another that are broken":   {more: []any{plugintest.Pod("fan", likesNear(9, zone), likesNear(9, podsWhere("zone", "app", "Like")), likesFar(1, zone), plugintest.OnNode("b2"))}, pod: plugintest.Pod("p", me), want: []int64{0, 0, -1, -1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pl := plugintest.Must(NewInterPodAffinity(InterPodAffinityArgs{HardPodAffinityWeight: 3}))
			got, _, _ := affinityWorld(c.more...).WideScores(t, pl, c.pod, "a1", "a2", "b1", "b2", "off")
			if !slices.Equal(got, c.want) {
				t.Errorf("scores %v, want %v", got, c.want)
			}
		})
	}
}

// The least of the nodes that fit gets 0, the greatest 100; what lies between is cut to a whole number. Where all are
// alike, all get 0. Nodes that do not fit have no say. Mutants: pod-affinity-normal-from-zero,
// pod-affinity-normal-rounds.
func TestPodAffinityNormalises(t *testing.T) {
	w := affinityWorld(plugintest.Pod("foe", likesFar(4, podsBy("host", "app", "web")), plugintest.OnNode("b1")))
	p := plugintest.Pod("p", wears("app", "web"), likesNear(2, podsBy("zone", "app", "web")), likesNear(5, podsBy("host", "tier", "front")))
	for fit, want := range map[string][2][]int64{
		"a1 a2 b1 b2": {{7, 2, -4, 0}, {100, 54, 0, 36}},
		"a1 a2":       {{7, 2}, {100, 0}},
		"a2 b2":       {{2, 0}, {100, 0}},
		"b1 b2":       {{-4, 0}, {0, 100}},
		"b2 off":      {{0, 0}, {0, 0}},
		"a1 a1":       {{7, 7}, {0, 0}},
	} {
		raw, normal, _ := w.WideScores(t, interPod(), p, strings.Fields(fit)...)
		if !slices.Equal(raw, want[0]) || !slices.Equal(normal, want[1]) {
			t.Errorf("%s: raw %v, normalised %v; want %v", fit, raw, normal, want)
		}
	}
}

// With hardPodAffinityWeight 0 the needs of others count for nothing, with ignorePreferredTermsOfExistingPods their
// preferences only for pods that have preferences themselves. Mutants: pod-affinity-hard-always,
// pod-affinity-ignore-all, pod-affinity-ignore-nothing.
func TestPodAffinityArguments(t *testing.T) {
	zone := podsBy("zone", "app", "web")
	w := affinityWorld(plugintest.Pod("fan", likesNear(9, zone), plugintest.OnNode("b2")), plugintest.Pod("tail", wantsNear(zone), plugintest.OnNode("b2")))
	for name, c := range map[string]struct {
		args InterPodAffinityArgs
		pod  *v1.Pod
		want []int64
	}{
		"defaults":                       {DefaultInterPodAffinityArgs(), plugintest.Pod("p", wears("app", "web")), []int64{0, 10}},
		"no hard weight":                 {InterPodAffinityArgs{}, plugintest.Pod("p", wears("app", "web")), []int64{0, 9}},
		"greatest hard weight":           {InterPodAffinityArgs{HardPodAffinityWeight: 100}, plugintest.Pod("p", wears("app", "web")), []int64{0, 109}},
		"ignored":                        {InterPodAffinityArgs{1, true}, plugintest.Pod("p", wears("app", "web")), nil},
		"ignored, required terms of own": {InterPodAffinityArgs{1, true}, plugintest.Pod("p", wears("app", "web"), wantsNear(zone)), nil},
		"preferences of its own":         {InterPodAffinityArgs{1, true}, plugintest.Pod("p", wears("app", "web"), likesFar(1, podsBy("zone", "app", "absent"))), []int64{0, 10}},
	} {
		if got, _, _ := w.WideScores(t, plugintest.Must(NewInterPodAffinity(c.args)), c.pod, "a1", "b1"); !slices.Equal(got, c.want) {
			t.Errorf("%s: scores %v, want %v", name, got, c.want)
		}
	}
	for _, weight := range []int32{-1, 101} {
		if _, err := NewInterPodAffinity(InterPodAffinityArgs{HardPodAffinityWeight: weight}); err == nil {
			t.Errorf("a hard weight of %d is taken", weight)
		}
	}
}

// Where the filter does not run, terms that cannot be read fail the attempt; ignored ones do not.
func TestPodAffinityCannotScoreBrokenTerms(t *testing.T) {
	w := affinityWorld()
	s, broken := w.Store.Snapshot(), podsWhere("zone", "app", "Like")
	for _, p := range []*v1.Pod{plugintest.Pod("p", wantsNear(broken)), plugintest.Pod("p", likesFar(1, broken))} {
		if score, err := interPod().PrepareUncached(s, w.Intake.PendingPod(p), nil); score != nil || err == nil || !strings.HasPrefix(err.Error(), "failed to parse pod: ") {
			t.Errorf("score %v, error %v", score, err)
		}
		if interPod().Skips(s, w.Intake.PendingPod(p)) {
			t.Error("an error is skipped")
		}
	}
	pl := plugintest.Must(NewInterPodAffinity(InterPodAffinityArgs{1, true}))
	rec := w.Intake.PendingPod(plugintest.Pod("p", wantsNear(broken)))
	if score, err := pl.PrepareUncached(s, rec, nil); score != nil || err != nil || !pl.Skips(s, rec) {
		t.Errorf("ignored: score %v, error %v", score, err)
	}
}
