// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
)

// labelled is a plugin whose answers are labels of the pod: POINT=reject, error, panic, wait, or skip. A pod with the
// label allow, reject or preempt says so to the waiting pod of that name, from PostBind.
type labelled struct {
	name   string
	handle fwk.Handle
	log    *[]string
}

func (l *labelled) Name() string { return l.name }

func (l *labelled) note(format string, args ...any) {
	*l.log = append(*l.log, l.name+" "+fmt.Sprintf(format, args...))
}

// answer returns the status that the label of a point asks for.
func (l *labelled) answer(point string, pod *v1.Pod) *fwk.Status {
	l.note("%s %s", point, pod.Name)
	by, what, _ := strings.Cut(pod.Labels[point], ".")
	if by != l.name {
		return nil
	}
	switch what {
	case "reject":
		return fwk.NewStatus(fwk.Unschedulable, point+" says no")
	case "error":
		return fwk.AsStatus(errors.New(point + " is down"))
	case "panic":
		panic(point + " is broken")
	case "wait":
		return fwk.NewStatus(fwk.Wait)
	case "skip":
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

func (l *labelled) Reserve(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	return l.answer("reserve", p)
}

func (l *labelled) Unreserve(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) {
	l.note("unreserve %s", p.Name)
}

func (l *labelled) Permit(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	return l.answer("permit", p), 20 * time.Second
}

func (l *labelled) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult,
	*fwk.Status) {
	return nil, nil
}

func (l *labelled) PreBind(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	return l.answer("prebind", p)
}

func (l *labelled) Bind(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	if p.Labels["bind"] == "" {
		return fwk.NewStatus(fwk.Skip)
	}
	return l.answer("bind", p)
}

func (l *labelled) PostBind(_ context.Context, _ fwk.CycleState, p *v1.Pod, node string) {
	l.note("postbind %s on %s", p.Name, node)
	if l.name != "A" {
		return
	}
	l.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		switch w.GetPod().Name {
		case p.Labels["allow"]:
			w.Allow("A")
			w.Allow("unknown")
		case p.Labels["reject"]:
			w.Reject("A", "another pod says no")
		case p.Labels["preempt"]:
			w.Preempt("A", "another pod goes first")
		}
	})
}

const labelledProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: A}, {name: B}]}
    postFilter: {disabled: [{name: "*"}]}
    bind: {disabled: [{name: "*"}], enabled: [{name: A}, {name: DefaultBinder}]}
`

// TestFrameworkPluginsAfterTheDecision plays testdata/framework-after-decision.txt with two plugins of kube-scheduler's
// framework from Reserve to PostBind.
func TestFrameworkPluginsAfterTheDecision(t *testing.T) {
	playStories(t, "framework-after-decision.txt", labelledProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, h fwk.Handle) fwk.Plugin { return &labelled{name, h, log} })
	})
}

const gangProfile = labelledProfile + `  pluginConfig:
  - name: Kumiki
    args: {gangs: {annotation: "On"}}
`

// TestFrameworkPluginsOfGangs plays testdata/framework-gangs.txt: Reserve and Permit of the members of gangs.
func TestFrameworkPluginsOfGangs(t *testing.T) {
	playStories(t, "framework-gangs.txt", gangProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, h fwk.Handle) fwk.Plugin { return &labelled{name, h, log} })
	})
}

// playStories plays the stories of a file, separated by empty lines, each with plugins and a scheduler of its own.
// Lines with > are the calls of the plugins.
func playStories(t *testing.T, name, profile string, plugins func(log *[]string) app.Plugins) {
	t.Helper()
	file := filepath.Join("testdata", name)
	configuration := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(configuration, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, story := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		var log []string
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(story), "\n"), func(l string) bool {
			return strings.HasPrefix(l, ">")
		})
		out, err := Play(plugins(&log), configuration, strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(out)
		for _, call := range log {
			got.WriteString("> " + call + "\n")
		}
		got.WriteString("\n")
	}
	if want := strings.TrimSpace(string(text)) + "\n"; strings.TrimSpace(got.String())+"\n" != want {
		if os.Getenv(updateVariable) == "" {
			t.Fatalf("other calls than written; %s=1 writes these:\n%s", updateVariable, got.String())
		}
		if err := os.WriteFile(file, []byte(strings.TrimSpace(got.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
