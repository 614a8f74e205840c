// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// ranks scores a pod on the named nodes as if only they fit. It asks both forms and fails when they differ; scored is
// false when the plugin does not score the pod.
func (w *world) ranks(t *testing.T, pl WideScorer, p *v1.Pod, nodes ...string) (raw, normal []int64, scored bool) {
	t.Helper()
	s := w.store.Snapshot()
	var fit []cluster.NodeIdx
	for _, name := range nodes {
		n, ok := s.Find(name)
		if !ok {
			t.Fatalf("no node %q", name)
		}
		fit = append(fit, n)
	}
	rec := w.intake.PendingPod(p)
	score, err := pl.PrepareWide(s, rec, fit)
	if err != nil {
		t.Fatal(err)
	}
	if skips := pl.(Skipper).Skips(s, rec); skips != (score == nil) {
		t.Errorf("%s: Skips says %v, PrepareWide gives a score: %v", p.Name, skips, score != nil)
	}
	if score == nil {
		return nil, nil, false
	}
	raw = make([]int64, len(fit))
	score.Rows(s, fit, raw)
	for i, n := range fit {
		if plain := score.Plain(s, s.View(n)); plain != raw[i] {
			t.Errorf("%s on %s: the plain form scores %d, the rows %d", p.Name, nodes[i], plain, raw[i])
		}
	}
	normal = slices.Clone(raw)
	score.Normalize(s, fit, normal)
	return raw, normal, true
}

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
		"nobody has preferences":             {pod: pod("p", me)},
		"likes near":                         {pod: pod("p", likesNear(7, zone)), want: []int64{7, 7, 0, 0, 0}},
		"likes far":                          {pod: pod("p", likesFar(7, zone)), want: []int64{-7, -7, 0, 0, 0}},
		"two likes":                          {pod: pod("p", likesNear(7, zone), likesNear(5, web)), want: []int64{12, 7, 0, 0, 0}},
		"each for itself":                    {pod: pod("p", likesNear(7, zone), likesNear(5, podsBy("zone", "app", "absent"))), want: []int64{7, 7, 0, 0, 0}},
		"likes and dislikes that cancel":     {pod: pod("p", likesNear(7, zone), likesFar(7, zone)), want: []int64{0, 0, 0, 0, 0}},
		"every pod counts":                   {more: []any{pod("web2", me, onNode("a2"))}, pod: pod("p", likesNear(7, zone)), want: []int64{14, 14, 0, 0, 0}},
		"all namespaces":                     {pod: pod("p", likesNear(7, ofSpacesWith(zone, everySpace))), want: []int64{7, 7, 7, 7, 0}},
		"namespaces selected":                {pod: pod("p", likesNear(7, ofSpacesWith(zone, red))), want: []int64{0, 0, 7, 7, 0}},
		"namespaces without labels":          {pod: pod("p", likesNear(7, ofSpacesWith(zone, selectWhere("team", metav1.LabelSelectorOpDoesNotExist)))), want: []int64{7, 7, 7, 7, 0}},
		"nobody there":                       {pod: pod("p", likesNear(7, podsBy("zone", "app", "absent")))},
		"a key that no node has":             {pod: pod("p", likesNear(7, podsBy("rack", "app", "web")))},
		"a terminating pod":                  {more: []any{gone(pod("db", wears("app", "db"), onNode("b2")))}, pod: pod("p", likesNear(7, podsBy("host", "app", "db"))), want: []int64{0, 0, 0, 7, 0}},
		"a pod on a node that is not there":  {more: []any{pod("db", wears("app", "db"), onNode("lost"))}, pod: pod("p", likesNear(7, podsBy("host", "app", "db")))},
		"a pod on a node without the label":  {more: []any{pod("db", wears("app", "db"), onNode("off"))}, pod: pod("p", likesNear(7, podsBy("host", "app", "db")))},
		"liked by another":                   {more: []any{pod("fan", likesNear(9, zone), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, 9, 9, 0}},
		"disliked by another":                {more: []any{pod("foe", likesFar(9, zone), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, -9, -9, 0}},
		"liked by two":                       {more: []any{pod("fan", likesNear(9, zone), onNode("b2")), pod("fan2", likesNear(9, zone), onNode("b1"))}, pod: pod("p", me), want: []int64{0, 0, 18, 18, 0}},
		"liked twice":                        {more: []any{pod("fan", likesNear(9, zone), likesNear(9, zone), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, 18, 18, 0}},
		"liked as one of a namespace":        {more: []any{pod("fan", inNamespace("bare"), likesNear(9, ofSpacesWith(web, red)), onNode("b2"))}, pod: pod("p", inNamespace("other"), me), want: []int64{0, 0, 0, 9, 0}},
		"not liked as one without labels":    {more: []any{pod("fan", likesNear(9, ofSpacesWith(web, selectWhere("team", metav1.LabelSelectorOpDoesNotExist))), onNode("b2"))}, pod: pod("p", inNamespace("other"), me)},
		"needed by another":                  {more: []any{pod("tail", wantsNear(zone), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, 3, 3, 0}},
		"needed twice":                       {more: []any{pod("tail", wantsNear(zone, web), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, 3, 6, 0}},
		"needing is not scored":              {pod: pod("p", wantsNear(zone))},
		"repelling is not scored":            {more: []any{pod("loner", wantsFar(zone), onNode("b2"))}, pod: pod("p", me)},
		"both ways":                          {more: []any{pod("fan", likesNear(9, zone), onNode("b2"))}, pod: pod("p", me, likesNear(7, web)), want: []int64{7, 0, 9, 9, 0}},
		"a weight of nothing is a score too": {pod: pod("p", likesNear(0, zone)), want: []int64{0, 0, 0, 0, 0}},
		"terms of another that are broken":   {more: []any{pod("fan", likesNear(9, zone), likesNear(9, podsWhere("zone", "app", "Like")), likesFar(1, zone), onNode("b2"))}, pod: pod("p", me), want: []int64{0, 0, -1, -1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pl := must(NewInterPodAffinity(InterPodAffinityArgs{HardPodAffinityWeight: 3}))
			got, _, _ := affinityWorld(c.more...).ranks(t, pl, c.pod, "a1", "a2", "b1", "b2", "off")
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
	w := affinityWorld(pod("foe", likesFar(4, podsBy("host", "app", "web")), onNode("b1")))
	p := pod("p", wears("app", "web"), likesNear(2, podsBy("zone", "app", "web")), likesNear(5, podsBy("host", "tier", "front")))
	for fit, want := range map[string][2][]int64{
		"a1 a2 b1 b2": {{7, 2, -4, 0}, {100, 54, 0, 36}},
		"a1 a2":       {{7, 2}, {100, 0}},
		"a2 b2":       {{2, 0}, {100, 0}},
		"b1 b2":       {{-4, 0}, {0, 100}},
		"b2 off":      {{0, 0}, {0, 0}},
		"a1 a1":       {{7, 7}, {0, 0}},
	} {
		raw, normal, _ := w.ranks(t, interPod(), p, strings.Fields(fit)...)
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
	w := affinityWorld(pod("fan", likesNear(9, zone), onNode("b2")), pod("tail", wantsNear(zone), onNode("b2")))
	for name, c := range map[string]struct {
		args InterPodAffinityArgs
		pod  *v1.Pod
		want []int64
	}{
		"defaults":                       {DefaultInterPodAffinityArgs(), pod("p", wears("app", "web")), []int64{0, 10}},
		"no hard weight":                 {InterPodAffinityArgs{}, pod("p", wears("app", "web")), []int64{0, 9}},
		"greatest hard weight":           {InterPodAffinityArgs{HardPodAffinityWeight: 100}, pod("p", wears("app", "web")), []int64{0, 109}},
		"ignored":                        {InterPodAffinityArgs{1, true}, pod("p", wears("app", "web")), nil},
		"ignored, required terms of own": {InterPodAffinityArgs{1, true}, pod("p", wears("app", "web"), wantsNear(zone)), nil},
		"preferences of its own":         {InterPodAffinityArgs{1, true}, pod("p", wears("app", "web"), likesFar(1, podsBy("zone", "app", "absent"))), []int64{0, 10}},
	} {
		if got, _, _ := w.ranks(t, must(NewInterPodAffinity(c.args)), c.pod, "a1", "b1"); !slices.Equal(got, c.want) {
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
	s, broken := w.store.Snapshot(), podsWhere("zone", "app", "Like")
	for _, p := range []*v1.Pod{pod("p", wantsNear(broken)), pod("p", likesFar(1, broken))} {
		if score, err := interPod().PrepareWide(s, w.intake.PendingPod(p), nil); score != nil || err == nil || !strings.HasPrefix(err.Error(), "failed to parse pod: ") {
			t.Errorf("score %v, error %v", score, err)
		}
		if interPod().Skips(s, w.intake.PendingPod(p)) {
			t.Error("an error is skipped")
		}
	}
	pl := must(NewInterPodAffinity(InterPodAffinityArgs{1, true}))
	rec := w.intake.PendingPod(pod("p", wantsNear(broken)))
	if score, err := pl.PrepareWide(s, rec, nil); score != nil || err != nil || !pl.Skips(s, rec) {
		t.Errorf("ignored: score %v, error %v", score, err)
	}
}
