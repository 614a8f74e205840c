// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// toTry are pods that a plugin asks to be tried, by key.
type toTry map[string]*v1.Pod

// Clone returns the same map.
func (p toTry) Clone() fwk.StateData { return p }

// afterOther rejects a pod with the label after until the pod of that name has passed the extension point of the label
// at, and no event wakes it: it is tried again because the plugin asks for it through the CycleState.
type afterOther struct {
	waiting map[string]*v1.Pod // name of the pod that goes first -> the pod that waits for it
	passed  map[string]bool    // pod -> it has passed
}

func (*afterOther) Name() string { return "AfterOther" }

func (*afterOther) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

func (a *afterOther) PreFilter(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	if first := p.Labels["after"]; first != "" && !a.passed[first] {
		a.waiting[first] = p
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waits for "+first)
	}
	return nil, nil
}

func (*afterOther) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// pass lets a pod pass an extension point.
func (a *afterOther) pass(state fwk.CycleState, point string, p *v1.Pod) {
	if p.Labels["at"] != point {
		return
	}
	a.passed[p.Name] = true
	if next := a.waiting[p.Name]; next != nil {
		data, err := state.Read("to-try")
		if err != nil {
			panic(err)
		}
		data.(toTry)[next.Name] = next
	}
}

func (a *afterOther) Reserve(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	a.pass(state, "reserve", p)
	return nil
}

// Permit lets a pod with the label hold wait.
func (a *afterOther) Permit(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if p.Labels["hold"] != "" {
		return fwk.NewStatus(fwk.Wait), time.Minute
	}
	return nil, 0
}

func (*afterOther) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (a *afterOther) PostBind(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) {
	a.pass(state, "postBind", p)
}

// TestPodsOfTheCycleStateAreTried: pods that a plugin names in the CycleState are tried when the pod has a node, also if
// it waits for Permit, and those that it names in PostBind after it.
func TestPodsOfTheCycleStateAreTried(t *testing.T) {
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "AfterOther",
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return &afterOther{map[string]*v1.Pod{}, map[string]bool{}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	plugins = plugins.WithFrameworkHooks(framework.Hooks{
		Began: func(state fwk.CycleState) { state.Write("to-try", toTry{}) },
		Activated: func(state fwk.CycleState) map[string]*v1.Pod {
			data, err := state.Read("to-try")
			if err != nil {
				t.Fatal(err)
			}
			state.Write("to-try", toTry{})
			return data.(toTry)
		},
	})
	file := filepath.Join(t.TempDir(), "config.yaml")
	configuration := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
		"- schedulerName: default-scheduler\n  plugins: {multiPoint: {enabled: [{name: AfterOther}]}, " +
		"postFilter: {disabled: [{name: \"*\"}]}}\n"
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `node n
pod b label.after=a
  b waits: 0/1 nodes are available: waits for a.
pod a label.at=reserve label.hold=yes
  a runs on n, 1 of 1 nodes fit, score 0
  b runs on n, 1 of 1 nodes fit, score 0
pod d label.after=c
  d waits: 0/1 nodes are available: waits for c.
pod c label.at=postBind
  c runs on n, 1 of 1 nodes fit, score 0
  d runs on n, 1 of 1 nodes fit, score 0
`
	got, err := Play(plugins, file, script)
	// Scores are not the subject.
	if got = regexp.MustCompile(`score \d+`).ReplaceAllString(got, "score 0"); err != nil || got != script {
		t.Errorf("%v; decisions:\n%s", err, got)
	}
}
