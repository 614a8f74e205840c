// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// helper is a plugin whose PostFilter answers as labels of the pod say: NAME=unschedulable, final, success, error,
// panic or skip; NAME.node is the node that it nominates, none for none; NAME.other is POD.NODE, which it nominates by
// the Handle; NAME.wish and NAME.fears say that its Filter rejects all nodes, so that evictions help or do not.
type helper struct {
	name   string
	handle fwk.Handle
	log    *[]string
}

func (h *helper) Name() string { return h.name }

func (h *helper) note(format string, args ...any) {
	*h.log = append(*h.log, h.name+" "+fmt.Sprintf(format, args...))
}

func (h *helper) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

func (h *helper) PreFilter(_ context.Context, state fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (
	*fwk.PreFilterResult, *fwk.Status) {
	state.Write(fwk.StateKey(h.name), seenPod(p.Name))
	return nil, nil
}

func (h *helper) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (h *helper) Filter(_ context.Context, _ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	switch n.Node().Name {
	case p.Labels[h.name+".wish"]:
		return fwk.NewStatus(fwk.Pending, h.name+" waits")
	case p.Labels[h.name+".fears"]:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, h.name+" fears it")
	}
	return nil
}

// seenPod is what PreFilter leaves to PostFilter.
type seenPod string

func (s seenPod) Clone() fwk.StateData { return s }

func (h *helper) PostFilter(_ context.Context, state fwk.CycleState, p *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nodes, _ := h.handle.SnapshotSharedLister().NodeInfos().List()
	var seen []string
	for _, n := range nodes {
		status := statuses.Get(n.Node().Name)
		line := fmt.Sprintf("%s %s by %s", n.Node().Name, status.Code(), status.Plugin())
		if pods := h.handle.NominatedPodsForNode(n.Node().Name); len(pods) > 0 {
			line += fmt.Sprintf(" and left to %s", names(pods))
		}
		seen = append(seen, line)
	}
	helped, _ := statuses.NodesForStatusCode(h.handle.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	before, _ := state.Read(fwk.StateKey(h.name))
	h.note("postfilter %s, PreFilter saw %v: %s; %d may be helped", p.Name, before, strings.Join(seen, ", "), len(helped))
	if pod, node, is := strings.Cut(p.Labels[h.name+".other"], "."); is {
		other := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: pod, UID: types.UID(pod)}}
		h.handle.AddNominatedPod(klog.Background(), podOnly{pod: other},
			&fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: node})
		h.note("sees %s nominated to %s", names(h.handle.NominatedPodsForNode(node)), node)
	}
	var result *fwk.PostFilterResult
	if node := p.Labels[h.name+".node"]; node != "" {
		result = &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{
			NominatingMode: fwk.ModeOverride, NominatedNodeName: strings.TrimSuffix(node, "none")}}
	}
	switch p.Labels[h.name] {
	case "success":
		return result, nil
	case "final":
		return result, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, h.name+" is sure")
	case "error":
		return result, fwk.AsStatus(errors.New(h.name + " is down"))
	case "panic":
		panic(h.name + " is broken")
	case "skip":
		return result, fwk.NewStatus(fwk.Skip)
	}
	return result, fwk.NewStatus(fwk.Unschedulable, h.name+" cannot help")
}

// podOnly is a PodInfo without figures.
type podOnly struct {
	fwk.PodInfo
	pod *v1.Pod
}

func (p podOnly) GetPod() *v1.Pod { return p.pod }

func names(pods []fwk.PodInfo) []string {
	list := []string{}
	for _, p := range pods {
		list = append(list, p.GetPod().Name)
	}
	return list
}

const helperProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: A}, {name: B}]}
    postFilter: {disabled: [{name: "*"}], enabled: [{name: A}, {name: DefaultPreemption}, {name: B}]}
`

// TestFrameworkPostFilter plays testdata/framework-post-filter.txt: A is asked before evictions, B after them.
func TestFrameworkPostFilter(t *testing.T) {
	playStories(t, "framework-post-filter.txt", helperProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, h fwk.Handle) fwk.Plugin { return &helper{name, h, log} })
	})
}

// pluginsOf registers the plugins A and B.
func pluginsOf(t *testing.T, make func(name string, h fwk.Handle) fwk.Plugin) app.Plugins {
	t.Helper()
	var regs []framework.Registration
	for _, name := range []string{"A", "B"} {
		regs = append(regs, framework.Registration{Name: name,
			Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
				return make(name, h), nil
			}})
	}
	plugins, err := app.Plugins{}.WithFramework(regs...)
	if err != nil {
		t.Fatal(err)
	}
	return plugins
}
