// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"k8s.io/klog/v2/ktesting"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// logged is what one step with these effects writes at a verbosity.
func logged(t *testing.T, verbosity int, effects ...engine.Effect) string {
	t.Helper()
	log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(verbosity)))
	logStep(log, effects)
	sink, ok := log.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatalf("sink is a %T", log.GetSink())
	}
	return sink.GetBuffer().String()
}

// TestAQueueMoveIsLoggedWithItsCause at -v=4, and a decision with its number at -v=3.
func TestAQueueMoveIsLoggedWithItsCause(t *testing.T) {
	pod := record.PodRef{Namespace: "ns", Name: "p", UID: "u1"}
	moved := engine.Moved{Move: record.QueueMove{Pod: pod, From: record.Unschedulable, To: record.Active, Event: "NodeAdd",
		Hint: "NodeResourcesFit", Cause: "node n has room for it"}}
	placed := engine.Decided{Decision: record.Decision{Number: 7, Pod: pod, Verdict: record.Placed, Attempt: 2, Nodes: 5, Feasible: 3,
		Winner: &record.Candidate{Node: "n"}}}
	rejected := engine.Decided{Decision: record.Decision{Number: 8, Pod: pod, Verdict: record.DoesNotFit, Plugins: []string{"NodePorts"},
		Message: "0/5 nodes are available"}}
	trouble := engine.Trouble{Object: "ns/p", What: "panic", Details: "index out of range"}

	at4 := logged(t, 4, moved)
	for _, want := range []string{`pod="ns/p"`, `from="unschedulable"`, `to="active"`, `event="NodeAdd"`, `plugin="NodeResourcesFit"`,
		`cause="node n has room for it"`} {
		if !strings.Contains(at4, want) {
			t.Errorf("%s is not in %s", want, at4)
		}
	}
	at3 := logged(t, 3, moved, placed, rejected)
	for _, want := range []string{`decision=7 pod="ns/p" attempt=2 node="n"`, `decision=8`, `plugins=["NodePorts"]`, `message="0/5 nodes are available"`} {
		if !strings.Contains(at3, want) {
			t.Errorf("%s is not in %s", want, at3)
		}
	}
	if strings.Contains(at3, "Moved") {
		t.Errorf("moves are logged at 3: %s", at3)
	}
	if at0 := logged(t, 0, moved, placed, rejected, trouble); !strings.Contains(at0, "index out of range") || strings.Contains(at0, "decision") {
		t.Errorf("at 0: %s", at0)
	}
}
