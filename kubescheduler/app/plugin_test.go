// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"
)

// turnsName is the name of Turns in configuration files.
const turnsName = "Turns"

// TurnsArgs are the arguments of Turns, in upstream's scheme.
type TurnsArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Label names the pod that goes first.
	Label string `json:"label,omitempty"`
}

// DeepCopyObject returns a copy.
func (a *TurnsArgs) DeepCopyObject() runtime.Object {
	out := *a
	return &out
}

func init() {
	scheme.Scheme.AddKnownTypes(config.SchemeGroupVersion, &TurnsArgs{})
	scheme.Scheme.AddKnownTypes(configv1.SchemeGroupVersion, &TurnsArgs{})
	scheme.Scheme.AddTypeDefaultingFunc(&TurnsArgs{}, func(obj any) {
		if a := obj.(*TurnsArgs); a.Label == "" {
			a.Label = "after"
		}
	})
}

// turns is a plugin in the style of those in upstream's tree: it takes arguments through the scheme, asserts
// framework.Framework, and activates pods through the CycleState. A pod whose label names another pod is rejected until
// that one is reserved. No event wakes it.
type turns struct {
	args      *TurnsArgs
	framework upstream.Framework

	mu       sync.Mutex
	reserved map[string]bool    // pod -> it was reserved
	waiting  map[string]*v1.Pod // pod that goes first -> the one that waits for it
}

var (
	_ fwk.EnqueueExtensions = (*turns)(nil)
	_ fwk.PreFilterPlugin   = (*turns)(nil)
	_ fwk.ReservePlugin     = (*turns)(nil)
)

// newTurns makes the plugin.
func newTurns(_ context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	typed, is := args.(*TurnsArgs)
	if !is {
		return nil, fmt.Errorf("want TurnsArgs, got %T", args)
	}
	f, is := h.(upstream.Framework)
	if !is {
		return nil, fmt.Errorf("the Handle is a %T, no framework.Framework", h)
	}
	return &turns{args: typed, framework: f, reserved: map[string]bool{}, waiting: map[string]*v1.Pod{}}, nil
}

func (*turns) Name() string { return turnsName }

func (*turns) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

func (p *turns) PreFilter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := pod.Labels[p.args.Label]; first != "" && !p.reserved[first] {
		p.waiting[first] = pod
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waits for "+first+" in profile "+
			p.framework.ProfileName())
	}
	return nil, nil
}

func (*turns) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (p *turns) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved[pod.Name] = true
	next := p.waiting[pod.Name]
	if next == nil {
		return nil
	}
	data, err := state.Read(upstream.PodsToActivateKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	activate := data.(*upstream.PodsToActivate)
	activate.Lock()
	defer activate.Unlock()
	activate.Map[next.Namespace+"/"+next.Name] = next
	return nil
}

func (*turns) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

// turnsConfig is a profile with Turns; %s are further fields of the file.
const turnsConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
%s
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Turns}]}}
  pluginConfig:
  - name: Turns
    args: {label: follows}
`
