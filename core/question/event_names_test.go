// SPDX-License-Identifier: Apache-2.0

package question

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// TestEventNames: the events that a pod waits for are few words; all updates of an object are one.
// Mutant: a name for each kind of update.
func TestEventNames(t *testing.T) {
	for _, c := range []struct {
		action plugin.Action
		want   []string
	}{
		{plugin.All, []string{"resource.k8s.io/DeviceClassAll"}},
		{plugin.Update, []string{"resource.k8s.io/DeviceClassUpdate"}},
		{plugin.Add | plugin.Update, []string{"resource.k8s.io/DeviceClassAdd", "resource.k8s.io/DeviceClassUpdate"}},
		{plugin.Delete | plugin.UpdateNodeLabel,
			[]string{"resource.k8s.io/DeviceClassDelete", "resource.k8s.io/DeviceClassUpdateNodeLabel"}},
	} {
		got := eventNames(plugin.Event{Resource: plugin.DeviceClassObject, Action: c.action})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.action, got, c.want)
		}
	}
}
