// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bindsAll is an extender that binds every pod and says nothing else.
type bindsAll struct{ engine.Foreign }

func (bindsAll) Binder(*cluster.Pod) string { return "http://extender" }
func (bindsAll) Takes(*cluster.Pod) bool    { return false }

// TestGangsThatAnExtenderBinds: with a stated size they are bound by it, and need no note for a restart; without
// one the gang waits, and its pods are notified why. Catches binds that leave nothing from which the next leader
// could read how many there had to be.
func TestGangsThatAnExtenderBinds(t *testing.T) {
	prof := engine.DefaultProfile("default-scheduler")
	prof.Foreign = bindsAll{}
	s := newStory(t)
	s.engine = engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second})
	told := string(s.play([]byte(`node n cpu=8
synced
tick 10
pod a1 cpu=1 gang=a size=2
pod a2 cpu=1 gang=a size=2
cycle
pod b1 cpu=1 gang=b
tick 60
cycle
where b1
`)))
	for _, want := range []string{
		"bind a1 to n (decision 1; gang a of 2, decision 1)",
		"bind a2 to n (decision 2; gang a of 2, decision 1)",
		`"gated", on ""`,
		"GangScheduling: gang default/b does not say how many pods it needs, and default/b1 is bound by the extender http://extender, which leaves no note of it: state the size",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("not told: %s\n%s", want, told)
		}
	}
}
