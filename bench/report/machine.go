// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Machine is what everything ran on. It has no name: a report is shown to others.
type Machine struct {
	CPUs        int    `json:"cpus"`
	Processor   string `json:"processor"`
	MemoryBytes int64  `json:"memoryBytes"`
	Kernel      string `json:"kernel"` // system, release and architecture
}

// text is a line for people.
func (m Machine) text() string {
	processor := m.Processor
	if processor != "" {
		processor = " (" + processor + ")"
	}
	return fmt.Sprintf("%d CPUs%s, %.0f GiB of memory, %s", m.CPUs, processor, float64(m.MemoryBytes)/(1<<30), m.Kernel)
}

// ThisMachine reads /proc.
func ThisMachine() (Machine, error) {
	m := Machine{CPUs: runtime.NumCPU()}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, fmt.Errorf("which kernel this is: %w", err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-") // what follows may name who built it
	m.Kernel = fmt.Sprintf("%s %s %s", runtime.GOOS, version, runtime.GOARCH)
	memory, err := field("/proc/meminfo", "MemTotal")
	if err != nil {
		return m, err
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(memory, " kB"), 10, 64)
	if err != nil {
		return m, fmt.Errorf("how much memory there is: %w", err)
	}
	m.MemoryBytes = kib << 10
	m.Processor, err = field("/proc/cpuinfo", "model name")
	return m, err
}

// field is the first value of a name in a file of lines "name : value"; empty when there is none.
func field(path, name string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if n, v, ok := strings.Cut(scan.Text(), ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(v), nil
		}
	}
	return "", scan.Err()
}

// WorkloadSize is how much a workload creates.
type WorkloadSize struct {
	Name string `json:"name"`
	// Upstream is the test case of scheduler_perf that it is like; empty for none.
	Upstream string `json:"upstream,omitempty"`
	Nodes    int    `json:"nodes"`
	// Pods are all, those that are not measured too; without those of a steady state and of churn.
	Pods int `json:"pods"`
	// Seed draws what is random in it; nil when nothing is.
	Seed *int `json:"seed,omitempty"`
}

func SizeOf(p *workload.Plan) WorkloadSize {
	s := WorkloadSize{Name: p.Name}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *workload.CreateNodes:
			s.Nodes += op.Count
		case *workload.CreatePods:
			s.Pods += op.Count
		case *workload.CreatePodSets:
			s.Pods += op.Count * op.Pods.Count
		}
	}
	for _, label := range p.Labels {
		if name, ok := strings.CutPrefix(label, "upstream="); ok {
			s.Upstream = name
		}
	}
	if seed, ok := p.Params["seed"].(int); ok {
		s.Seed = &seed
	}
	return s
}

func (s *WorkloadSize) SeedText() string {
	if s.Seed == nil {
		return "-"
	}
	return fmt.Sprint(*s.Seed)
}
