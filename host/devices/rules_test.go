// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

func TestARuleTaintsDevices(t *testing.T) {
	const no, none = resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNone
	type sel = resourceapi.DeviceTaintSelector
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		what   string
		sel    *sel
		effect resourceapi.DeviceTaintEffect
		want   []string
	}{
		{"all", &sel{}, no, []string{}},
		{"a pool", &sel{Pool: text("a")}, no, []string{"b"}},
		{"another driver", &sel{Driver: text("x.example.com")}, no, []string{"a", "b"}},
		{"a device", &sel{Driver: text(driver), Pool: text("b"), Device: text("d0")}, no, []string{"a"}},
		{"another device", &sel{Device: text("d1")}, no, []string{"a", "b"}},
		{"without effect", &sel{}, none, []string{"a", "b"}},
		{"no selector", nil, no, []string{"a", "b"}},
	} {
		w := twoGPUs(t)
		w.claim("any", want("r", 1))
		p := w.pod("p", uses("any"))
		expect(t, "without a rule", w.fits(p), []string{"a", "b"})
		w.rule("rule", c.sel, c.effect)
		expect(t, c.what, w.fits(p), c.want)
		w.txn(func() { w.store.DeleteObject(cluster.KindDeviceTaint, cluster.ObjectKey{Name: "rule"}) })
		expect(t, c.what+", rule deleted", w.fits(p), []string{"a", "b"})
	}
}

func TestRulesAndSlicesChange(t *testing.T) {
	w := twoGPUs(t)
	w.claim("any", want("r", 1))
	p := w.pod("p", uses("any"))
	pool := "a"
	w.rule("rule", &resourceapi.DeviceTaintSelector{Pool: &pool}, resourceapi.DeviceTaintEffectNoSchedule)
	w.rule("second", &resourceapi.DeviceTaintSelector{Pool: &pool}, resourceapi.DeviceTaintEffectNoSchedule)
	expect(t, "tainted", w.fits(p), []string{"b"})
	w.slice("a", device("d0", "old"), device("d1", "old"))
	expect(t, "a new version of the slice", w.fits(p), []string{"b"})
	w.rule("rule", nil, resourceapi.DeviceTaintEffectNoSchedule)
	expect(t, "the other rule remains", w.fits(p), []string{"b"})
	w.rule("second", nil, resourceapi.DeviceTaintEffectNoSchedule)
	expect(t, "no rule remains", w.fits(p), []string{"a", "b"})
}

func TestWithoutTheFeatureRulesDoNotCount(t *testing.T) {
	w := twoGPUs(t)
	f := DefaultFeatures()
	f.TaintRules = false
	w.pl = w.plugin(DefaultArgs(), NewInventory(f))
	w.claim("any", want("r", 1))
	w.rule("rule", &resourceapi.DeviceTaintSelector{}, resourceapi.DeviceTaintEffectNoSchedule)
	p := w.pod("p", uses("any"))
	expect(t, "fits", w.fits(p), []string{"a", "b"})
	pr := w.pl.PrepareFilter(w.s(), p).Filter
	n, _ := w.s().Find("a")
	expect(t, "plain form", pr.Plain(w.s(), w.s().View(n)), 0)
}
