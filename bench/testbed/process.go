// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Scheduler is a scheduler's process.
type Scheduler struct {
	Name    string
	Cmd     *exec.Cmd
	Port    int           // 0: it serves nothing
	Log     string        // file with what it said
	ready   chan struct{} // closed when the line nullReady came; nil for those that serve
	Ended   chan struct{}
	ExitErr error // valid when ended is closed
	stop    context.CancelFunc
	client  *http.Client
	tls     *tls.Config // of connections to it
}

// gateFlags is the flag for feature gates, in the order of their names; none without gates.
func gateFlags(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + GateList(gates)}
}

func GateList(gates map[string]bool) string {
	var parts []string
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		parts = append(parts, fmt.Sprintf("%s=%v", gate, gates[gate]))
	}
	return strings.Join(parts, ",")
}

// commandLine is how a scheduler is started.
func commandLine(o Options, name, kubeconfig, dir string, port int) ([]string, error) {
	serve := []string{
		"--config=" + filepath.Join(dir, "scheduler.yaml"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}
	serve = append(serve, gateFlags(o.Gates)...)
	of, err := contestantOf(name)
	if err != nil {
		return nil, err
	}
	switch of.base {
	case report.Kumiki:
		return slices.Concat([]string{o.KumikiBinary, "scheduler"}, serve, o.Args), nil
	case report.Upstream:
		return append([]string{o.UpstreamBinary}, serve...), nil
	case report.CreateOnly:
		return nil, nil // no process is started
	case report.Null:
		line := []string{o.KumikiBinary, "bench", "null", "--kubeconfig=" + kubeconfig,
			fmt.Sprintf("--qps=%g", o.QPS), fmt.Sprintf("--burst=%d", o.Burst)}
		if o.Play != "" {
			line = append(line, "--play="+o.Play)
		}
		if o.ProfileDir != "" {
			line = append(line, "--cpuprofile="+filepath.Join(o.ProfileDir, report.Null+".pprof"))
		}
		return line, nil
	}
	if strings.ContainsRune(of.base, filepath.Separator) {
		return append([]string{of.base}, serve...), nil
	}
	return nil, fmt.Errorf("scheduler %q is unknown; there are %s, %s, %s, and paths of programs that take kube-scheduler's flags", name, report.Kumiki, report.Upstream, report.Null)
}

// Start starts a scheduler's process, which ends with ctx or with this process.
func Start(ctx context.Context, o Options, name, kubeconfig, dir string) (*Scheduler, error) {
	s := &Scheduler{Name: name, Log: filepath.Join(dir, fileName(name)+".log"), Ended: make(chan struct{})}
	var err error
	if name == report.Null {
		s.ready = make(chan struct{})
	} else if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	line, err := commandLine(o, name, kubeconfig, dir, s.Port)
	if err != nil {
		return nil, err
	}
	text, err := o.settingsOf(name, kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "scheduler.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	if len(line) == 0 {
		return nil, fmt.Errorf("%s starts no scheduler; it can be measured with a workload only", name)
	}
	log, err := os.Create(s.Log)
	if err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.Cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	s.Cmd.Stderr = log
	s.Cmd.Env = environment(o.Set.limits(report.DefaultGoLimits()))
	s.Cmd.SysProcAttr = testcluster.ChildAttributes(syscall.SIGTERM)
	s.Cmd.Cancel = func() error { return s.Cmd.Process.Signal(syscall.SIGTERM) }
	s.Cmd.WaitDelay = 20 * time.Second
	stdout, err := s.Cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := s.Cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() {
		s.follow(stdout)
		s.ExitErr = s.Cmd.Wait()
		log.Close()
		close(s.Ended)
	}()
	return s, nil
}

// follow reads what the process prints until it prints no more.
func (s *Scheduler) follow(stdout io.Reader) {
	for scan := bufio.NewScanner(stdout); scan.Scan(); {
		if s.ready != nil && scan.Text() == ReadyLine {
			close(s.ready)
		}
	}
}

// freePort asks the kernel for a port that is not in use.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Connect makes the client that asks the scheduler itself, as the user of a kubeconfig. The certificate was made by the
// scheduler for itself a moment ago and is not checked.
func (s *Scheduler) Connect(kubeconfig string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	tc, err := cfg.TransportConfig()
	if err != nil {
		return err
	}
	own, err := transport.TLSConfigFor(tc)
	if err != nil {
		return err
	}
	s.tls = &tls.Config{
		InsecureSkipVerify: true, Certificates: own.Certificates, GetClientCertificate: own.GetClientCertificate,
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: s.tls.Clone()}}
	return nil
}

// WaitReady returns when the scheduler knows the cluster and shows its metrics to us, which it does once it has read
// from the API server which clients to trust: some moments later.
func (s *Scheduler) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if s.ready == nil && s.Get(ctx, "/readyz", io.Discard) == nil && s.Get(ctx, "/metrics", io.Discard) == nil {
			return nil
		}
		select {
		case <-s.ready:
			return nil
		case <-s.Ended:
			return fmt.Errorf("%s ended before it was ready: %v\n%s", s.Name, s.ExitErr, s.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready: %w\n%s", s.Name, ctx.Err(), s.LogTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Get writes the answer to a request.
func (s *Scheduler) Get(ctx context.Context, path string, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", s.Port, path), nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", path, s.Name, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// Profile writes a CPU profile of the next seconds into a directory, and then where memory was allocated since the
// start; a scheduler that serves nothing has none.
func (s *Scheduler) Profile(ctx context.Context, dir string, seconds int) error {
	if s.Port == 0 {
		return nil
	}
	for _, p := range []struct{ file, path string }{
		{fileName(s.Name) + ".pprof", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds)},
		{fileName(s.Name) + ".allocs.pprof", "/debug/pprof/allocs"},
	} {
		f, err := os.Create(filepath.Join(dir, p.file))
		if err != nil {
			return err
		}
		if err := errors.Join(s.Get(ctx, p.path, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// LogTail is the end of what the process said.
func (s *Scheduler) LogTail() string {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// Close ends the process and waits for it.
func (s *Scheduler) Close() {
	s.stop()
	<-s.Ended
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// environment returns the environment of this program with the limits in place of its own.
func environment(l report.GoLimits) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"}, name)
	})
	return append(env, fmt.Sprintf("GOMAXPROCS=%d", l.Procs), fmt.Sprintf("GOGC=%d", l.GCPercent))
}

// ReadyLine is the line by which the null binder reports that it knows nodes and pods.
const ReadyLine = "ready"
