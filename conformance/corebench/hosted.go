// SPDX-License-Identifier: Apache-2.0

package corebench

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Schedulers that run one plugin of kube-scheduler's framework beside the default ones: a name of Contenders, or
// kumiki, and a suffix.
const (
	Scoring  = "+score"  // FewestPods scores each node that fits
	Skipping = "+skip"   // a plugin that skips each pod, at PreFilter and PreScore
	Windowed = "/window" // kumiki ranks as many nodes as kube-scheduler does
)

// Hosted are the schedulers with a plugin, kumiki first.
func Hosted() []core.Contender {
	kumiki := func(name string, p fwk.Plugin, strategy string) core.Contender {
		return core.Hosting(name, func() (engine.Config, error) { return hosting(p, strategy) })
	}
	upstream := func(name string, percentage int32) core.Contender {
		return core.Contender{Name: name, New: func() (core.Subject, error) {
			return startWith(percentage, fewestPods{})
		}}
	}
	return []core.Contender{
		kumiki(core.KumikiName+Scoring, fewestPods{}, "all"), upstream(All+Scoring, 100),
		kumiki(core.KumikiName+Windowed+Scoring, fewestPods{}, "window"), upstream(Default+Scoring, 0),
		kumiki(core.KumikiName+Skipping, skipper{}, "all"),
	}
}

// hosting returns kumiki's default profile with a plugin.
func hosting(p fwk.Plugin, strategy string) (engine.Config, error) {
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: p.Name(), Type: p,
		Factory: func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) { return p, nil }})
	if err != nil {
		return engine.Config{}, err
	}
	c, err := plugins.ParseConfig(fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: %s}]}}
  pluginConfig: [{name: Kumiki, args: {strategy: %s}}]
`, p.Name(), strategy))
	if err != nil {
		return engine.Config{}, err
	}
	out, err := plugins.EngineConfig(c)
	out.UnschedulableTimeout = 300 * record.Second
	return out, err
}

// startWith starts upstream's scheduler, its default profile with a plugin.
func startWith(percentage int32, p fwk.Plugin) (core.Subject, error) {
	settings, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("upstream's default configuration: %w", err)
	}
	enabled := &settings.Profiles[0].Plugins.MultiPoint.Enabled
	*enabled = append(*enabled, config.Plugin{Name: p.Name()})
	factory := func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) { return p, nil }
	return start(percentage, scheduler.WithProfiles(settings.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(runtime.Registry{p.Name(): factory}))
}

// fewestPods reads each NodeInfo, as most plugins do that score: it prefers nodes with few pods.
type fewestPods struct{}

func (fewestPods) Name() string { return "FewestPods" }

func (fewestPods) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return max(fwk.MaxScore-int64(len(node.GetPods())), 0), nil
}

func (fewestPods) ScoreExtensions() fwk.ScoreExtensions { return nil }

// skipper has nothing to say of any pod.
type skipper struct{}

func (skipper) Name() string { return "Skipper" }

func (skipper) PreFilter(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Skip)
}

func (skipper) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (skipper) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status { return nil }

func (skipper) PreScore(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	return fwk.NewStatus(fwk.Skip)
}

func (skipper) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

func (skipper) ScoreExtensions() fwk.ScoreExtensions { return nil }
