// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/samples"
)

// history is a scheduler that is sampled every 250 ms for 5 s.
type history struct {
	gauges   samples.Values // stay as they are
	counters samples.Values // grow by this in a second
	pods     *samples.Pods  // Unbound and Nominated stay, Created and Left grow by this in a second
	probes   []int64        // of each sample
	api      samples.Values // what the API server counts in the whole time
	noAPI    string
}

const steps = 20

func (h history) document() *samples.Document {
	d := &samples.Document{NoAPI: h.noAPI}
	for i := range steps + 1 {
		seconds := float64(i) / 4
		v := maps.Clone(h.gauges)
		if v == nil {
			v = samples.Values{}
		}
		for name, rate := range h.counters { // order: into a map
			v[name] = rate * seconds
		}
		s := samples.Sample{At: int64(1e9 + seconds*1e9), Values: v, Probes: h.probes}
		if h.pods != nil {
			s.Pods = &samples.Pods{Unbound: h.pods.Unbound, Nominated: h.pods.Nominated,
				Created: int(float64(h.pods.Created) * seconds), Left: int(float64(h.pods.Left) * seconds),
				Area: int64(float64(h.pods.Unbound) * seconds * 1e9)}
		}
		d.Samples = append(d.Samples, s)
	}
	if h.api != nil {
		d.Before, d.After = samples.Values{}, h.api
	}
	return d
}

// kumiki adds what each kumiki has: a loop that is busy for this share of the time, and rests in a state.
func kumiki(busy float64, rests string, more samples.Values) samples.Values {
	v := samples.Values{`kumiki_loop_seconds_total{state="cycle"}`: busy}
	v[`kumiki_loop_seconds_total{state="`+rests+`"}`] += 1 - busy
	maps.Copy(v, more)
	return v
}

// binds are n binds per second that take this time each, of which the limiter takes a part.
func binds(n float64, took, limiter time.Duration) samples.Values {
	const bind = `{extension_point="Bind",profile="default-scheduler",status="Success"}`
	return samples.Values{pointSum + bind: n * took.Seconds(), pointCount + bind: n,
		attempts + `{profile="default-scheduler",result="scheduled"}`: n,
		requestSum + `{verb="POST"}`:                                  n * took.Seconds(), requestCount + `{verb="POST"}`: n,
		limiterSum + `{verb="POST"}`: n * limiter.Seconds()}
}

// handled is what the API server counts of n binds.
func handled(n float64, each, fairness, etcd time.Duration) samples.Values {
	return samples.Values{handlerSum + `{subresource="binding"}`: n * (each + fairness).Seconds(), handlerCount + `{subresource="binding"}`: n,
		fairnessSum + `{execute="true",priority_level="workload-high"}`:   n * fairness.Seconds(),
		fairnessCount + `{execute="true",priority_level="workload-high"}`: n,
		fairnessSum + `{execute="true",priority_level="exempt"}`:          0, fairnessCount + `{execute="true",priority_level="exempt"}`: 10 * n,
		etcdSum + `{operation="update",type="/registry/pods/"}`: n * etcd.Seconds(), etcdCount + `{operation="update",type="/registry/pods/"}`: n}
}

func join(all ...samples.Values) samples.Values {
	v := samples.Values{}
	for _, one := range all {
		maps.Copy(v, one)
	}
	return v
}

const (
	active   = `scheduler_pending_pods{queue="active"}`
	binding  = `scheduler_goroutines{operation="binding"}`
	assuming = `scheduler_cache_size{type="assumed_pods"}`
	ms       = time.Millisecond
)

// TestCausesFromSamples: what a scheduler with one bottleneck shows, and the cause that is named from it.
func TestCausesFromSamples(t *testing.T) {
	fast := []int64{int64(ms), int64(ms)}
	for name, c := range map[string]struct {
		h    history
		want string // the cause, or the beginning of why it is not known
	}{
		"slow creator": {history{gauges: samples.Values{binding: 0.1, assuming: 0.1}, probes: fast,
			counters: kumiki(0.02, "idle", binds(20, 5*ms, 0)), pods: &samples.Pods{Created: 20, Left: 20},
			api: handled(100, 4*ms, 0, ms)}, "arrivals"},
		"delayed binds": {history{gauges: samples.Values{binding: 8, assuming: 8}, probes: fast,
			counters: kumiki(0.02, "idle", binds(40, 200*ms, 0)), pods: &samples.Pods{Unbound: 8, Created: 40, Left: 40},
			api: handled(200, 4*ms, 0, ms)}, "api-latency"},
		"fairness": {history{gauges: samples.Values{binding: 100, assuming: 900}, probes: fast,
			counters: kumiki(0.02, "idle", binds(200, 500*ms, 0)), pods: &samples.Pods{Unbound: 900, Created: 0, Left: 200},
			api: handled(1000, 5*ms, 490*ms, ms)}, "apf"},
		"API server without CPU": {history{gauges: samples.Values{binding: 8, assuming: 8}, probes: []int64{int64(ms), int64(200 * ms)},
			counters: kumiki(0.02, "idle", binds(40, 200*ms, 0)), pods: &samples.Pods{Unbound: 8, Created: 40, Left: 40},
			api: handled(200, 190*ms, 0, 100*ms)}, "api-server-cpu"},
		"etcd": {history{gauges: samples.Values{binding: 8, assuming: 8}, probes: fast,
			counters: kumiki(0.02, "idle", binds(40, 200*ms, 0)), pods: &samples.Pods{Unbound: 8, Created: 40, Left: 40},
			api: handled(200, 198*ms, 0, 195*ms)}, "etcd"},
		"qps": {history{gauges: samples.Values{binding: 100, assuming: 400}, probes: fast,
			counters: kumiki(0.02, "idle", binds(10, 10*time.Second, 9990*ms)), pods: &samples.Pods{Unbound: 400, Created: 40, Left: 10},
			api: handled(50, 4*ms, 0, ms)}, "client-limit"},
		"two binds in flight": {history{gauges: samples.Values{binding: 2, assuming: 500}, probes: fast,
			counters: kumiki(0.1, "idle", binds(400, 5*ms, 0)), pods: &samples.Pods{Unbound: 500, Left: 400},
			api: handled(2000, 4*ms, 0, ms)}, "in-flight-limit"},
		"paused": {history{gauges: samples.Values{active: 50}, counters: kumiki(0.02, "held", nil), probes: fast,
			pods: &samples.Pods{Unbound: 50}, api: samples.Values{}}, "pause"},
		"too many decisions": {history{gauges: samples.Values{active: 50}, counters: kumiki(0.02, "limited", nil), probes: fast,
			pods: &samples.Pods{Unbound: 50}, api: samples.Values{}}, "decided-ahead-limit"},
		"idle loop": {history{gauges: samples.Values{active: 50}, counters: kumiki(0.02, "idle", nil), probes: fast,
			pods: &samples.Pods{Unbound: 50}, api: samples.Values{}}, "lost-wake-up"},
		"recorder": {history{gauges: samples.Values{active: 50}, counters: join(kumiki(0.05, "idle", nil), samples.Values{
			`kumiki_loop_seconds_total{state="observer"}`: 0.95, `kumiki_loop_seconds_total{state="idle"}`: 0}), probes: fast,
			pods: &samples.Pods{Unbound: 50}, api: samples.Values{}}, "observers"},
		"standby": {history{gauges: samples.Values{active: 50, `leader_election_master_status{name="kube-scheduler"}`: 0},
			pods: &samples.Pods{Unbound: 50}, api: samples.Values{}}, "pause"},
		"gates":    {history{gauges: samples.Values{`scheduler_pending_pods{queue="gated"}`: 30}, counters: kumiki(0, "idle", nil), pods: &samples.Pods{Unbound: 30}}, "gate"},
		"capacity": {history{gauges: samples.Values{`scheduler_pending_pods{queue="unschedulable"}`: 30}, counters: kumiki(0, "idle", nil), pods: &samples.Pods{Unbound: 30}}, "no-capacity"},
		"victims":  {history{gauges: samples.Values{`scheduler_pending_pods{queue="gated"}`: 30}, counters: kumiki(0, "idle", nil), pods: &samples.Pods{Unbound: 30, Nominated: 30}}, "victims"},
		"late watch": {history{gauges: samples.Values{active: 0}, counters: kumiki(0.01, "idle", nil), probes: fast,
			pods: &samples.Pods{Unbound: 40, Created: 40}}, "watch-delivery"},
		"API server denies metrics": {history{gauges: samples.Values{binding: 8, assuming: 8}, noAPI: "403",
			counters: kumiki(0.02, "idle", binds(40, 200*ms, 0))}, "not known"},
		"gauges and watch differ": {history{gauges: samples.Values{active: 50}, counters: kumiki(1, "idle", nil),
			pods: &samples.Pods{Unbound: 20}}, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			v := bottleneck.Find(Window(c.h.document(), nil, nil))
			got := "not known"
			if v.Known {
				got = v.Findings[0].Cause.String()
			}
			if got != c.want {
				t.Errorf("named %s (%s), want %s: %+v", got, v.NotKnown, c.want, v)
			}
		})
	}
}

// TestARestartIsNotKnown: the counters of two processes have no difference.
func TestARestartIsNotKnown(t *testing.T) {
	d := history{gauges: samples.Values{active: 50, "process_start_time_seconds": 5}, counters: kumiki(1, "idle", nil)}.document()
	if v := bottleneck.Find(Window(d, busyLoop(), nil)); !v.Known {
		t.Errorf("without a restart: %s", v.NotKnown)
	}
	d.Samples[steps].Values["process_start_time_seconds"] = 6
	if v := bottleneck.Find(Window(d, busyLoop(), nil)); v.Known {
		t.Errorf("with a restart %s is named", v.Findings[0].Cause)
	}
}

// busyLoop is the profile of a loop that computes, outside of the parts that have a cause of their own.
func busyLoop() *apm.Profile {
	traced, cpu, factor := 5*time.Second, 4*time.Second, 1.0
	return &apm.Profile{Traced: &traced, CPU: apm.CPU{Executing: 5 * time.Second, Factor: &factor}, Lanes: []apm.Row{
		{Name: "loop", Lane: apm.Loop, InLoop: true, Running: 4 * time.Second, CPU: &cpu}}}
}

// TestLoopWorkFromTheTrace: what the loop does while it is busy comes from the trace of the same time.
func TestLoopWorkFromTheTrace(t *testing.T) {
	one := 3 * time.Second
	full := func(change func(*apm.Profile)) *apm.Profile {
		p := busyLoop()
		change(p)
		return p
	}
	for want, p := range map[string]*apm.Profile{
		"plugin": full(func(p *apm.Profile) { p.Plugins = []apm.Row{{Name: "spread", InLoop: true, CPU: &one}} }),
		"preemption": full(func(p *apm.Profile) {
			p.Functions = []apm.Row{{Name: kumikiPath + "core/preempt.(*Finder).Find", InLoop: true, CumulativeCPU: &one}}
		}),
		"foreign-code": full(func(p *apm.Profile) {
			p.Functions = []apm.Row{{Name: kumikiPath + "host/extender.(*client).call",
				Blocked: apm.Blocked{apm.Select: 4 * time.Second}}}
		}),
		"cpu-starvation": full(func(p *apm.Profile) { third := 0.3; p.CPU.Factor = &third }),
		"gc": full(func(p *apm.Profile) {
			p.CPU.Executing = 6 * time.Second
			p.Lanes[0].Running, p.Lanes[0].Runnable = time.Second, 4*time.Second
			p.Lanes = append(p.Lanes, apm.Row{Name: "GC", Lane: apm.Collector, Running: 5 * time.Second})
		}),
		"scheduler-cpu": full(func(*apm.Profile) {}),
	} {
		h := history{gauges: samples.Values{active: 500}, counters: kumiki(1, "idle", nil)}
		v := bottleneck.Find(Window(h.document(), p, nil))
		if !v.Known || v.Findings[0].Cause.String() != want {
			t.Errorf("want %s: %+v", want, v)
		}
	}
}

// TestLongTurn: kumiki's loop counts a turn when it ends. If nothing was counted for longer than a rest can be, the loop
// is in a turn.
func TestLongTurn(t *testing.T) {
	h := history{gauges: samples.Values{active: 500}, counters: kumiki(1, "idle", nil)}
	d := h.document()
	for i := steps / 2; i <= steps; i++ {
		for name := range kumiki(1, "idle", nil) {
			d.Samples[i].Values[name] = d.Samples[steps/2].Values[name]
		}
	}
	v := bottleneck.Find(Window(d, busyLoop(), nil))
	if !v.Known || v.Findings[0].Cause != bottleneck.SchedulerCPU {
		t.Errorf("a turn of 2.5 s: %+v", v)
	}
}

// TestWatchReaderWithoutCPU: pods that the scheduler does not know yet, because it has no CPU to read the watch.
func TestWatchReaderWithoutCPU(t *testing.T) {
	traced, cpu, factor := 5*time.Second, time.Second, 0.1
	p := &apm.Profile{Traced: &traced, CPU: apm.CPU{Executing: 5 * time.Second, Factor: &factor}, Lanes: []apm.Row{
		{Name: "informers", Lane: apm.Informers, Running: time.Second, Runnable: 4500 * time.Millisecond, CPU: &cpu}}}
	h := history{gauges: samples.Values{active: 0}, counters: kumiki(0.01, "idle", nil), probes: []int64{int64(ms)},
		pods: &samples.Pods{Unbound: 40, Created: 40}}
	if v := bottleneck.Find(Window(h.document(), p, nil)); !v.Known || v.Findings[0].Cause != bottleneck.CPUStarvation {
		t.Errorf("without CPU: %+v", v)
	}
}

// TestOtherSchemas: binds do not wait in queues of another client's flow schema, which serves fewer requests.
func TestOtherSchemas(t *testing.T) {
	h := history{gauges: samples.Values{binding: 8, assuming: 8}, probes: []int64{int64(ms)},
		counters: kumiki(0.02, "idle", binds(40, 200*ms, 0)), pods: &samples.Pods{Unbound: 8, Created: 40, Left: 40},
		api: join(handled(200, 198*ms, 0, 195*ms), samples.Values{
			fairnessSum + `{execute="true",flow_schema="batch",priority_level="low"}`:   500,
			fairnessCount + `{execute="true",flow_schema="batch",priority_level="low"}`: 50})}
	if v := bottleneck.Find(Window(h.document(), nil, nil)); !v.Known || v.Findings[0].Cause != bottleneck.Etcd {
		t.Errorf("another client waits: %+v", v)
	}
}

// TestPodsThatWereThere: the watch begins with the pods that were there, which did not come meanwhile, and whose waiting
// it has not seen until then.
func TestPodsThatWereThere(t *testing.T) {
	d := history{gauges: samples.Values{active: 500, assuming: 0}, counters: kumiki(1, "idle", nil),
		pods: &samples.Pods{Unbound: 500}}.document()
	for i := range d.Samples {
		d.Samples[i].Pods.Created, d.Samples[i].Pods.Unbound = 500, 500
	}
	d.Samples[0].Pods.Created, d.Samples[0].Pods.Unbound = 100, 100
	for i := 1; i < len(d.Samples); i++ {
		d.Samples[i].Pods.Area -= int64(90 * time.Second)
	}
	w := Window(d, busyLoop(), nil)
	v := bottleneck.Find(w)
	if v.Arrived != 0 || !v.Known || v.Little == nil || *v.Little > 0.01 {
		t.Errorf("%.1f pods/s came; two measurements of the waiting differ by %v: %s", v.Arrived, v.Little, v.NotKnown)
	}
}

// TestPodsInStepWithSamples: pods that come in step with the samples are always sampled in the same part of their way,
// so gauges of few pods may be off by half a pod.
func TestPodsInStepWithSamples(t *testing.T) {
	h := history{gauges: samples.Values{binding: 4, assuming: 4}, probes: []int64{int64(ms)},
		counters: binds(40, 90*ms, 0), pods: &samples.Pods{Unbound: 4, Created: 40, Left: 40},
		api: handled(200, 88*ms, 0, 85*ms)}
	d := h.document()
	for i := range d.Samples {
		d.Samples[i].Pods.Area = d.Samples[i].Pods.Area * 88 / 100
	}
	if v := bottleneck.Find(Window(d, nil, nil)); !v.Known || v.Findings[0].Cause != bottleneck.Etcd {
		t.Errorf("named %v: %s", v.Findings, v.NotKnown)
	}
}

// TestVolumesAreLookedAtOnceASecond: kube-scheduler looks once a second whether volumes are ready, so its pods save only
// the time beyond that.
func TestVolumesAreLookedAtOnceASecond(t *testing.T) {
	const point = `{extension_point="PreBind",profile="default-scheduler",status="Success"}`
	h := history{gauges: samples.Values{binding: 16}, probes: []int64{int64(ms)}, counters: join(binds(10, 5*ms, 0),
		samples.Values{pointSum + point: 16, pointCount + point: 10}), pods: &samples.Pods{Unbound: 16, Created: 10, Left: 10},
		api: handled(50, 4*ms, 0, ms)}
	v := bottleneck.Find(Window(h.document(), nil, nil))
	if !v.Known || v.Findings[0].Cause != bottleneck.Prepare || math.Abs(v.Findings[0].Gain.Saved-0.375) > 0.01 {
		t.Errorf("%+v", v)
	}
}
