// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// counts are devices and taken devices by node, as the scores see them.
func (w *world) counts(c *Counter) map[string][2]int64 {
	s := w.s()
	c.Revision(s)
	out := map[string][2]int64{}
	for _, name := range []string{"a", "b", "plain"} {
		n, _ := s.Find(name)
		devices, taken := c.Count(s, n, gpuResource)
		out[name] = [2]int64{devices, taken}
	}
	return out
}

// count-taken-free, count-any-device, counts-stale
func TestDevicesAreCountedForScores(t *testing.T) {
	w := twoGPUs(t)
	c := NewCounter(NewInventory(DefaultFeatures()))
	none := map[string][2]int64{"a": {0, 0}, "b": {0, 0}, "plain": {0, 0}}
	expect(t, "without a class that backs it", w.counts(c), none)
	w.class("gpu", backs(gpuResource), func(c *resourceapi.DeviceClass) {
		c.Spec.Selectors = []resourceapi.DeviceSelector{model("new")}
	})
	w.slice("b", device("d0", "new"), device("d1", "old"), device("d2", "new"))
	expect(t, "those of the class", w.counts(c), map[string][2]int64{"a": {0, 0}, "b": {2, 0}, "plain": {0, 0}})
	w.set(allocated(newClaim("x"), "b", "d0", "d1"))
	expect(t, "one is taken", w.counts(c), map[string][2]int64{"a": {0, 0}, "b": {2, 1}, "plain": {0, 0}})

	w.set(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "fabric"},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver,
			NodeSelector: selector("zone", "z"), Devices: []resourceapi.Device{device("f0", "new")},
			Pool: resourceapi.ResourcePool{Name: "fabric", Generation: 1, ResourceSliceCount: 7}}})
	w.node("plain", label("zone", "z"))
	expect(t, "a device of the network, though its pool is not whole", w.counts(c),
		map[string][2]int64{"a": {0, 0}, "b": {2, 1}, "plain": {1, 0}})

	w.class("gpu", backs(gpuResource), func(c *resourceapi.DeviceClass) {
		c.Spec.Selectors = []resourceapi.DeviceSelector{expr(`device.attributes["` + driver + `"].missing == "x"`)}
	})
	expect(t, "a selector that fails", w.counts(c), none)
}
