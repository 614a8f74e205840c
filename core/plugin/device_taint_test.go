// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

func taintRule(name, driver, key string) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: &driver},
			Taint: resourceapi.DeviceTaint{Key: key, Effect: resourceapi.DeviceTaintEffectNoSchedule}}}
}

// describeTaintChanges lists the devices of changed slices with the keys of their taints before and after.
func describeTaintChanges(changes []Change) (texts []string) {
	keys := func(obj cluster.Object) (all []string) {
		for _, d := range obj.(*resourceapi.ResourceSlice).Spec.Devices {
			text := d.Name
			for _, taint := range d.Taints {
				text += "," + taint.Key
			}
			all = append(all, text)
		}
		return all
	}
	for _, ch := range changes {
		texts = append(texts, fmt.Sprintf("%s %s %v %v", ch.Event, ch.NewObject.GetName(), keys(ch.OldObject),
			keys(ch.NewObject)))
	}
	return texts
}

// A change of a rule is a change of the slices whose devices it taints, and of no others.
func TestChangesOfTaintRules(t *testing.T) {
	store := cluster.NewStore()
	set := func(obj cluster.Object) {
		store.Begin()
		store.SetObject(obj)
		store.Commit()
	}
	for _, name := range []string{"a", "b"} {
		own := []resourceapi.DeviceTaint{{Key: "own"}}
		set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + name},
			Spec: resourceapi.ResourceSliceSpec{Driver: name, Devices: []resourceapi.Device{{Name: "d", Taints: own}}}})
	}
	set(taintRule("middle", "b", "middle"))
	first, another := taintRule("first", "a", "x"), taintRule("first", "b", "x")
	for _, c := range []struct {
		what    string
		was, is *resourceapi.DeviceTaintRule
		want    []string
	}{
		{"new", nil, first, []string{"resource.k8s.io/ResourceSliceUpdate slice-a [d,own] [d,own,x]"}},
		{"as before", first, taintRule("first", "a", "x"), nil},
		{"another taint", first, taintRule("first", "a", "y"),
			[]string{"resource.k8s.io/ResourceSliceUpdate slice-a [d,own,x] [d,own,y]"}},
		{"another driver", first, another, []string{"resource.k8s.io/ResourceSliceUpdate slice-a [d,own,x] [d,own]",
			"resource.k8s.io/ResourceSliceUpdate slice-b [d,own,middle] [d,own,x,middle]"}},
		{"deleted", another, nil,
			[]string{"resource.k8s.io/ResourceSliceUpdate slice-b [d,own,x,middle] [d,own,middle]"}},
		{"no such driver", nil, taintRule("first", "c", "x"), nil},
	} {
		if c.is != nil {
			set(c.is)
		} else {
			store.Begin()
			store.DeleteObject(cluster.KindDeviceTaint, cluster.KeyOf(c.was))
			store.Commit()
		}
		got := describeTaintChanges(TaintRuleChanges(store.Snapshot(), c.was, c.is))
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	slice, _ := cluster.Find[*resourceapi.ResourceSlice](store.Snapshot(), "", "slice-b")
	if taints := slice.Spec.Devices[0].Taints; len(taints) != 1 {
		t.Errorf("a rule changed the slice itself: %v", taints)
	}
}
