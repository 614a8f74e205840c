// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// withDevices returns the default profile with a filter after its own.
func withDevices(nodes []*v1.Node, f *Devices) (Placer, error) {
	profile := engine.DefaultProfile(v1.DefaultSchedulerName)
	profile.Filters = append(profile.Filters, f)
	return NewPlacement(engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{profile},
		Less:           basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second}), nodes), nil
}

// TestDevicesHoldShares: two GPUs hold one share of 600 each. A third does not fit, although the node has 800
// thousandths free, and neither does a whole GPU; a share of 400 does.
func TestDevicesHoldShares(t *testing.T) {
	o := small("100,1,1,600,", "100,1,1,600,")
	d := o.devices()
	for i, pod := range []string{"p", "q"} {
		if !d.Fits("a", 600) {
			t.Fatalf("share %d of 600 does not fit", i)
		}
		d.Take(pod, "a", 600)
	}
	for milli, want := range map[int64]bool{0: true, 600: false, 1000: false, 400: true} { // order: each by itself
		if got := d.Fits("a", milli); got != want {
			t.Errorf("%d fits: %v, want %v", milli, got, want)
		}
	}
	if d.Release("q"); !d.Fits("a", 1000) || d.Fits("a", 2000) {
		t.Error("a whole GPU is not free after the end of its share, or two are")
	}
}

// TestSchedulerUnderTheProtocol: the scheduler places no share across GPUs, and what fits is placed.
func TestSchedulerUnderTheProtocol(t *testing.T) {
	for _, c := range []struct {
		o    *Openb
		want float64
	}{{small("100,1,1,1000,", "100,1,1,1000,"), 100}, {small("100,1,1,600,", "100,1,1,600,", "100,1,1,600,"), 60}} {
		curve, err := c.o.Place(withDevices, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(100*curve.used) / float64(curve.total); got != c.want {
			t.Errorf("%v %% of the GPUs are allocated, want %v", got, c.want)
		}
	}
	if _, err := small("100,1,1,1000,T4").Place(withDevices, 1); err == nil {
		t.Error("a pod that names a model is accepted")
	}
}
