// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// TestVictimsBesideTheLeastLoss: on generated clusters, no victim is needless, no evictions cost less than bound B8,
// and the sum of priorities is at most 1.1 times that of B8: with kube-scheduler's search for single pods, and with the
// one for units, which strict budgets use.
func TestVictimsBesideTheLeastLoss(t *testing.T) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for name, text := range map[string]string{ // order: each by itself
		"drop-in": head,
		"strict": head + "profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: Kumiki\n" +
			"    args: {preemption: {budgets: Strict}}\n",
	} {
		resolved, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		tally := &quality.PreemptionTally{}
		for seed := range int64(300) {
			made, err := EngineConfig(resolved)
			if err != nil {
				t.Fatal(err)
			}
			if err := quality.DrawPreemption(seed).Run(engine.New(made), name == "strict", tally); err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
		}
		t.Logf("%s: %+v", name, *tally)
		if tally.Cases < 200 || tally.Impossible == 0 && name == "strict" {
			t.Errorf("%s: too few cases have victims: %+v", name, *tally)
		}
		if tally.Needless > 0 || 10*tally.Priorities > 11*tally.BestPriorities {
			t.Errorf("%s: %+v", name, *tally)
		}
	}
}
