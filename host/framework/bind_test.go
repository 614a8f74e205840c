// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// answersBind is a plugin that answers at PreBind and Bind.
type answersBind struct {
	binds
	answer *fwk.Status // of Bind
}

func (b *answersBind) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return b.answer
}

// TestRejectionsAtTheBind: a rejection by PreBind or Bind is a message.Rejected with the plugin and its own words; an
// error is none.
func TestRejectionsAtTheBind(t *testing.T) {
	full := message.Rejected{Plugin: "A", Text: "full"}
	for name, tt := range map[string]struct {
		preBind, bind *fwk.Status
		want          message.Rejected // zero for an error
	}{
		"PreBind rejects":         {fwk.NewStatus(fwk.Unschedulable, "full"), nil, full},
		"PreBind rejects for all": {fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "full"), nil, full},
		"PreBind waits":           {fwk.NewStatus(fwk.Pending, "full"), nil, full},
		"PreBind says nothing":    {fwk.NewStatus(fwk.Unschedulable), nil, message.Rejected{Plugin: "A", Text: noReason}},
		"PreBind fails":           {preBind: fwk.NewStatus(fwk.Error, "full")},
		"Bind rejects":            {nil, fwk.NewStatus(fwk.Unschedulable, "full"), full},
		"Bind fails":              {bind: fwk.NewStatus(fwk.Error, "full")},
	} {
		t.Run(name, func(t *testing.T) {
			pl := &answersBind{binds{scripted: scripted{name: "A"}, preBind: func(context.Context) *fwk.Status {
				return tt.preBind
			}}, tt.bind}
			w := newWorld(t, nil, []config.Point{config.PreBind, config.Bind}, pl).nodes("a")
			p := w.Intake.PendingPod(plugintest.Pod("p"))
			defer w.reserve(p, "a").Hold.Release(nil, false)
			_, err := w.profile.host.Bind(t.Context(), p.Ref(), "a")
			if got, _ := errors.AsType[message.Rejected](err); err == nil || got != tt.want {
				t.Errorf("error %v, want rejection %+v", err, tt.want)
			}
		})
	}
}

// TestNominationBeforePreBind: the node of a pod is nominated before PreBind of a plugin, and not if all skip the pod or
// the pod shows that node already.
func TestNominationBeforePreBind(t *testing.T) {
	for name, tt := range map[string]struct {
		flight *fwk.Status // of PreBindPreFlight
		shown  string      // the node that is nominated already
		want   string
	}{
		"acts":            {want: "p to a, PreBind"},
		"skips":           {flight: fwk.NewStatus(fwk.Skip)},
		"shown already":   {shown: "a", want: "PreBind"},
		"shown elsewhere": {shown: "b", want: "p to a, PreBind"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			pl := &answersBind{binds: binds{scripted: scripted{name: "A"}, flight: tt.flight,
				preBind: func(context.Context) *fwk.Status { calls = append(calls, "PreBind"); return nil }}}
			w := newWorld(t, nil, []config.Point{config.PreBind, config.Bind}, pl).nodes("a")
			w.profile.host.env.Nominate = func(pod record.PodRef, node string) {
				calls = append(calls, pod.Name+" to "+node)
			}
			pod := plugintest.Pod("p")
			pod.Status.NominatedNodeName = tt.shown
			p := w.Intake.PendingPod(pod)
			defer w.reserve(p, "a").Hold.Release(nil, false)
			if _, err := w.profile.host.Bind(t.Context(), p.Ref(), "a"); err != nil && !errors.Is(err, ErrNative) {
				t.Fatal(err)
			}
			if got := strings.Join(calls, ", "); got != tt.want {
				t.Errorf("calls %q, want %q", got, tt.want)
			}
		})
	}
}
