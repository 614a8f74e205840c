// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

var update = flag.Bool("update", false, "write monitoring/metrics.txt instead of comparing it")

// listFile is what may be asked of kumiki by alerts and dashboards; the tests of those read it.
const listFile = "monitoring/metrics.txt"

const listHead = `# What /metrics of kumiki serves: name, type, labels. Made by go test ./deploy -run MetricsList -update; alerts and the
# dashboard may ask for nothing else (a test of deploy/test). Those at the end come from libraries; there are more of them.
`

// metricsOfTheProcess are served beside those that package kube makes: libraries count them. Lines as in the list.
var metricsOfTheProcess = []string{
	"go_goroutines gauge",
	"go_memstats_heap_inuse_bytes gauge",
	"leader_election_master_status gauge name",
	"process_cpu_seconds_total counter",
	"process_resident_memory_bytes gauge",
	"process_start_time_seconds gauge",
	"rest_client_request_duration_seconds histogram host,verb",
	"rest_client_requests_total counter code,host,method",
}

// described is how a metric describes itself in text.
var described = regexp.MustCompile(`fqName: "(\w+)".* variableLabels: \{([^}]*)\}`)

// registered collects what is registered, as lines of the list.
type registered struct {
	componentmetrics.KubeRegistry
	lines []string
}

// Register takes a metric in.
func (r *registered) Register(m componentmetrics.Registerable) error {
	if err := r.KubeRegistry.Register(m); err != nil {
		return err
	}
	kind := ""
	switch m := m.(type) {
	case *componentmetrics.Counter, *componentmetrics.CounterVec:
		kind = "counter"
	case *componentmetrics.Gauge, *componentmetrics.GaugeVec:
		kind = "gauge"
	case *componentmetrics.Histogram, *componentmetrics.HistogramVec:
		kind = "histogram"
	case interface{ Kind() string }: // read when it is scraped
		kind = m.Kind()
	default:
		return fmt.Errorf("a %T is not known here", m)
	}
	of := described.FindStringSubmatch(firstOf(m.Describe).String())
	if of == nil {
		return fmt.Errorf("%s does not describe itself", m.FQName())
	}
	labels := strings.FieldsFunc(of[2], func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(labels)
	r.lines = append(r.lines, strings.TrimSpace(of[1]+" "+kind+" "+strings.Join(labels, ",")))
	return nil
}

func firstOf[D any](describe func(chan<- D)) D {
	all := make(chan D, 16)
	describe(all)
	return <-all
}

// TestMetricsListIsWhatIsServed compares the list with what package kube registers; the test on a cluster compares it
// with what a running kumiki serves. It catches a metric that was renamed, or lost a label, while alerts ask for it.
func TestMetricsListIsWhatIsServed(t *testing.T) {
	r := &registered{KubeRegistry: componentmetrics.NewKubeRegistry()}
	metrics.New(r)
	slices.Sort(r.lines)
	want := listHead + strings.Join(append(r.lines, metricsOfTheProcess...), "\n") + "\n"
	if *update {
		if err := os.WriteFile(listFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what kumiki serves; run the test with -update, and read the difference:\n%s", listFile, want)
	}
}

var sampleLine = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? \S+$`)

// servesItsList holds what a process answers against the list: whatever it serves under our prefixes and those that
// libraries count, with these labels. Metrics without a value yet are not shown.
func (s *stage) servesItsList(body string) {
	s.Helper()
	raw, err := os.ReadFile(listFile)
	if err != nil {
		s.Fatal(err)
	}
	type entry struct{ kind, labels string }
	listed := map[string]entry{} // name -> what the list says
	for line := range strings.Lines(strings.TrimPrefix(string(raw), listHead)) {
		f := append(strings.Fields(line), "")
		listed[f[0]] = entry{f[1], f[2]}
	}
	kinds, samples := map[string]string{}, map[string]int{} // name -> type; name -> samples that were compared
	for line := range strings.Lines(body) {
		if f := strings.Fields(line); strings.HasPrefix(line, "# TYPE ") && len(f) == 4 {
			kinds[f[2]] = f[3]
			continue
		}
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := m[1]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, end); kinds[base] == "histogram" {
				name = base
			}
		}
		want, known := listed[name]
		if !known {
			if strings.HasPrefix(name, "scheduler_") || strings.HasPrefix(name, "kumiki_") {
				s.Errorf("%s is served and not in %s", name, listFile)
			}
			continue
		}
		var labels []string
		for _, l := range regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		if got := (entry{kinds[name], strings.Join(labels, ",")}); got != want {
			s.Errorf("%s is served as %+v and listed as %+v", name, got, want)
		}
		samples[name]++
	}
	for _, line := range append(metricsOfTheProcess, "kumiki_loop_heartbeat_seconds", "scheduler_pending_pods", "scheduler_schedule_attempts_total") {
		if name := strings.Fields(line)[0]; samples[name] == 0 {
			s.Errorf("metric %s is not among those that are served", name)
		}
	}
}
