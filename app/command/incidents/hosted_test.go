// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// choosy is a plugin of kube-scheduler's framework that rejects every third pod everywhere, and other nodes at random.
// Its messages have names.
type choosy struct{}

func (choosy) Name() string { return "Choosy" }

func (choosy) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if pod.UID[len(pod.UID)-1]%3 == 0 || rand.IntN(3) == 0 {
		return fwk.NewStatus(fwk.Unschedulable,
			fmt.Sprintf("pod %s/%s does not like %s", pod.Namespace, pod.Name, node.Node().Name))
	}
	return nil
}

// newHostedCluster is newCluster with Choosy.
func newHostedCluster(t *testing.T) *cluster {
	t.Helper()
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "Choosy", Type: choosy{},
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return choosy{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Timeout: 5 * time.Minute, Tool: "kumiki test"}
	if o.Config, err = plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {multiPoint: {enabled: [{name: Choosy}]}}}]\n")); err != nil {
		t.Fatal(err)
	}
	cfg, err := plugins.EngineConfig(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(o.Timeout)
	c := &cluster{t: t, engine: engine.New(cfg), intake: convert.NewIntake(), now: record.Second}
	c.intake.KeepFull()
	c.flight = incident.NewFlight(c.engine.State, incident.DefaultLimits, func() incident.Server { return c.server })
	o.Hosted = tape.HostedBy(c.engine)
	c.store = New(c.flight, o)
	return c
}

// TestABundleWithPluginsReplays: a bundle of a scheduler with a plugin replays without the plugin, as it is and with
// pseudonyms, which are in the plugin's messages, too.
func TestABundleWithPluginsReplays(t *testing.T) {
	c := newHostedCluster(t)
	c.run(30, "secret", false)
	name, in := c.write()
	to, err := anonymized(t, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{name, to} {
		report, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Replay(file, app.Plugins{}, report)
		if err != nil || r.Different > 0 || r.Events != in.Events || r.Decisions < 30 {
			t.Errorf("replayed %+v, %v", r, err)
		}
	}
	if text := textOf(t, to); strings.Contains(text, "secret") {
		i := strings.Index(text, "secret")
		t.Errorf("a name is left: %s", text[max(0, i-200):min(len(text), i+100)])
	}
}
