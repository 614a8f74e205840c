// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherPod puts a pod labelled app=foreign on a node, in the namespace SCENARIO-other.
func otherPod(node string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		p := pod("foreign", "100m")
		p.Namespace, p.Labels, p.Spec.NodeName = s.scenario+"-other", map[string]string{"app": "foreign"}, node
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		var err error
		for range 100 {
			if _, err = s.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err == nil {
				return nil
			}
			if !waitABit(ctx) { // the account of the namespace comes a little later
				break
			}
		}
		return fmt.Errorf("creating a pod in another namespace: %w", err)
	}
}

// searchScenarios hold the ways to search that look at a part of the nodes: every pod lands where it can, the only node
// included.
func searchScenarios() []scenario {
	var scenarios []scenario
	for _, scheduler := range []string{"window", "subset", "two-choices"} {
		scenarios = append(scenarios, scenario{"search-" + scheduler, [][2]string{{"a", "{count: 12, capacity: {pods: '3'}}"}, {"b", "{labels: {only: 'yes'}}"}}, []step{
			{apply: repeated(20, `{kind: Pod, name: p%d, cpu: 100m, spec: {schedulerName: `+scheduler+`}}`) +
				`- {kind: Pod, name: only, spec: {schedulerName: ` + scheduler + `, nodeSelector: {only: "yes"}}}
- {kind: Pod, name: nowhere, cpu: "100", spec: {schedulerName: ` + scheduler + `}}`,
				want: map[string]string{"only": "b-0", "nowhere": "!13 Insufficient cpu"},
				check: func(on map[string]string) string {
					placed := 0
					for _, node := range on {
						if node != "" {
							placed++
						}
					}
					if placed != 21 {
						return fmt.Sprintf("%d pods are placed, want 21", placed)
					}
					return ""
				}},
		}})
	}
	return scenarios
}

// until asks until the answer is empty, which otherwise says what is missing.
func until(ctx context.Context, missing func() string) error {
	wrong := ""
	for range int(patience.Milliseconds()) / 100 {
		if wrong = missing(); wrong == "" {
			return nil
		}
		if !waitABit(ctx) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s", wrong)
}

// phase waits for the phase of a claim and returns the name of its volume.
func (s *stage) phase(ctx context.Context, claim string, want v1.PersistentVolumeClaimPhase) (volume string, err error) {
	err = until(ctx, func() string {
		c, err := s.client.CoreV1().PersistentVolumeClaims(s.scenario).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		volume = c.Spec.VolumeName
		if c.Status.Phase != want {
			return fmt.Sprintf("claim %s is %s, want %s", claim, c.Status.Phase, want)
		}
		return ""
	})
	return volume, err
}
