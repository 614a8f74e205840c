// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// taints returns the taints of a slice's devices. Upstream applies rules in the order of a map, so they are sorted.
func taints(slice *resourceapi.ResourceSlice) string {
	var b strings.Builder
	for i := range slice.Spec.Devices {
		var texts []string
		for _, t := range slice.Spec.Devices[i].Taints {
			texts = append(texts, fmt.Sprintf("%s=%s:%s %v", t.Key, t.Value, t.Effect, t.TimeAdded))
		}
		slices.Sort(texts)
		fmt.Fprintf(&b, "%s: %q\n", slice.Spec.Devices[i].Name, texts)
	}
	return b.String()
}

// updates are the updates of slices that upstream's tracker reports to the queue: slice -> its taints changed, apart
// from their order.
func updates(w *world) map[string]bool {
	seen := map[string]bool{}
	_, err := w.tracker.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, is := before.(*resourceapi.ResourceSlice), after.(*resourceapi.ResourceSlice)
		seen[is.Name] = seen[is.Name] || taints(was) != taints(is)
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return seen
}

// The taints of devices under changing rules and slices are those of upstream's tracker, and so are the changes of
// slices that wake pods when a rule changes.
func TestTaintRulesLikeUpstream(t *testing.T) {
	oracle.New().Close()
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{}
	for i := range cases {
		w := newWorld(t, &maker{Rand: rand.New(rand.NewPCG(seed+3, uint64(i))), taken: map[string]bool{}})
		upstream := updates(w)
		for range 6 {
			clear(upstream)
			if len(w.m.slices) > 0 && w.m.chance(30) {
				w.changeSlice()
				seen["slice changed"]++
			} else {
				ours := w.changeRule()
				w.compareWakes(ours, upstream)
				seen["slices changed by rules"] += len(ours)
			}
			seen["tainted"] += w.compareTaints()
		}
		if t.Failed() {
			t.Fatalf("case %d of seed %d", i, seed+3)
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed+3, seen)
	for _, must := range []string{"slice changed", "slices changed by rules", "tainted"} {
		if seen[must] < 1000 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// changeSlice deletes a slice, or gives it other devices.
func (w *world) changeSlice() {
	slice := one(w.m, w.m.slices...)
	if w.m.chance(20) {
		w.api.objects.Delete(scenario.ObjectRef{Kind: "ResourceSlice", Name: slice.Name})
		w.txn(func() { w.store.DeleteObject(cluster.KindResourceSlice, cluster.ObjectKey{Name: slice.Name}) })
		return
	}
	next := slice.DeepCopy()
	next.Spec.Devices = w.m.devices(w.m.IntN(4), false)
	w.api.put(next)
}

// changeRule sets or deletes a rule and returns the changes of slices that wake pods.
func (w *world) changeRule() []plugin.Change {
	rule := w.m.rule(w.m.IntN(3))
	was, _ := cluster.Find[*resourceapi.DeviceTaintRule](w.store.Snapshot(), "", rule.Name)
	if w.m.chance(25) {
		w.api.removeRule(rule.Name)
	} else {
		w.api.put(rule)
	}
	is, _ := cluster.Find[*resourceapi.DeviceTaintRule](w.store.Snapshot(), "", rule.Name)
	return plugin.TaintRuleChanges(w.store.Snapshot(), was, is)
}

func (w *world) compareWakes(ours []plugin.Change, upstream map[string]bool) {
	w.t.Helper()
	changed := map[string]bool{}
	for _, ch := range ours {
		was, is := ch.OldObject.(*resourceapi.ResourceSlice), ch.NewObject.(*resourceapi.ResourceSlice)
		if taints(was) != taints(is) {
			changed[is.Name] = true
		}
		if _, reported := upstream[is.Name]; !reported {
			w.t.Errorf("kumiki reports a change of %s, upstream does not", is.Name)
		}
	}
	for name, differs := range upstream {
		if differs && !changed[name] {
			w.t.Errorf("upstream reports a change of %s, kumiki does not", name)
		}
	}
}

// compareTaints compares the devices of all slices and returns how many slices have taints of rules.
func (w *world) compareTaints() (tainted int) {
	w.t.Helper()
	s := w.store.Snapshot()
	ours := map[string]string{}
	cluster.Each(s, func(slice *resourceapi.ResourceSlice) bool {
		is := plugin.TaintedSlice(slice, plugin.DeviceTaintRules(s))
		ours[slice.Name] = taints(is)
		if is != slice {
			tainted++
		}
		return true
	})
	patched, err := w.tracker.ListPatchedResourceSlices()
	if err != nil || len(patched) != len(ours) {
		w.t.Fatalf("upstream has %d slices, kumiki %d: %v", len(patched), len(ours), err)
	}
	for _, slice := range patched {
		if got, want := ours[slice.Name], taints(slice); got != want {
			w.t.Errorf("taints of %s: kumiki\n%supstream\n%s", slice.Name, got, want)
		}
	}
	return tainted
}
