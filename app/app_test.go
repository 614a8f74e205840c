// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"go.uber.org/goleak"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// names renders a profile: who gates, filters, scores with what weight, and wakes.
func names(p engine.Profile) map[string][]string {
	out := map[string][]string{} // role -> plugins in order
	for _, g := range p.Gates {
		out["gate"] = append(out["gate"], g.Name())
	}
	for _, f := range p.Filters {
		out["filter"] = append(out["filter"], f.Name())
	}
	for _, s := range p.Scorers {
		out["score"] = append(out["score"], s.Name()+"="+string(rune('0'+s.Weight)))
	}
	return out
}

// TestTheDefaultConfigurationIsTheDefaultProfile holds the two ways to the default together.
func TestTheDefaultConfigurationIsTheDefaultProfile(t *testing.T) {
	got, err := EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := engine.DefaultProfile(v1.DefaultSchedulerName)
	if len(got.Profiles) != 1 || got.Profiles[0].Name != want.Name || !reflect.DeepEqual(names(got.Profiles[0]), names(want)) {
		t.Errorf("got %v, want %v", names(got.Profiles[0]), names(want))
	}
	wakers := map[string]bool{} // plugin -> wakes
	for _, w := range got.Profiles[0].Wakers {
		if wakers[w.Name()] {
			t.Errorf("%s wakes twice", w.Name())
		}
		wakers[w.Name()] = true
	}
	for _, w := range want.Wakers {
		if !wakers[w.Name()] {
			t.Errorf("%s does not wake", w.Name())
		}
	}
	if got.Less == nil || got.Less.Name() != plugin.PrioritySortName {
		t.Errorf("ordered by %v", got.Less)
	}
}

// TestAConfigurationReachesThePlugins changes what a file can change and looks at what the engine gets.
func TestAConfigurationReachesThePlugins(t *testing.T) {
	c, err := config.Parse([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 7
profiles:
- schedulerName: packer
  plugins:
    score:
      disabled: [{name: ImageLocality}]
      enabled: [{name: NodeResourcesFit, weight: 5}]
    filter:
      disabled: [{name: NodePorts}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}
  - name: Kumiki
    args: {seed: 42}
- schedulerName: other
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Seed != 42 || got.InitialBackoff != 3e9 || got.MaxBackoff != 7e9 || len(got.Profiles) != 2 {
		t.Errorf("got %+v", got)
	}
	p := names(got.Profiles[0])
	if strings.Contains(strings.Join(p["score"], " "), "ImageLocality") || !strings.Contains(strings.Join(p["score"], " "), "NodeResourcesFit=5") {
		t.Errorf("scorers %v", p["score"])
	}
	if strings.Contains(strings.Join(p["filter"], " "), "NodePorts") {
		t.Errorf("filters %v", p["filter"])
	}
	fit := fitArguments(c.Profiles[0].Args.NodeResourcesFit)
	if fit.Strategy != plugin.MostAllocated || len(fit.Resources) != 1 || fit.Resources[0] != (plugin.WeightedResource{Name: "cpu", Weight: 2}) {
		t.Errorf("arguments of NodeResourcesFit: %+v", fit)
	}
}

// TestAnAPIServerThatIsDownIsWaitedFor: nothing ends, and the end leaves nothing behind.
func TestAnAPIServerThatIsDownIsWaitedFor(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Rest = &rest.Config{Host: closed.Addr().String(), QPS: -1}
	closed.Close()
	o.Serve.Secure.BindPort = 0
	for _, elect := range []bool{true, false} {
		o.Config.LeaderElection.Enabled = elect
		s, err := NewScheduler(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		asked := false
		if err := s.Ask(t.Context(), func(e *engine.Engine) { asked = !e.Ready() }); err != nil || !asked {
			t.Errorf("asking: %v; asked %v", err, asked)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("with election %v the end was %v", elect, err)
		}
	}
}

func TestAnUnreadableKubeconfigIsAClearError(t *testing.T) {
	o := DefaultOptions()
	o.Kubeconfig = filepath.Join(t.TempDir(), "missing")
	if _, err := NewScheduler(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Kubeconfig) {
		t.Errorf("got %v", err)
	}
}
