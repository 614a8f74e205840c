// SPDX-License-Identifier: Apache-2.0

package bench

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
)

// scheduler is a scheduler's process.
type scheduler struct {
	name   string
	cmd    *exec.Cmd
	port   int           // 0: it serves nothing
	log    string        // file with what it said
	ready  chan struct{} // closed when the line nullReady came; nil for those that serve
	ended  chan struct{}
	exit   error // valid when ended is closed
	stop   context.CancelFunc
	client *http.Client
}

// gateFlags is the flag for feature gates, in the order of their names; none without gates.
func gateFlags(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + gateList(gates)}
}

func gateList(gates map[string]bool) string {
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
	serve = append(serve, gateFlags(o.gates)...)
	of, err := contestantOf(name)
	if err != nil {
		return nil, err
	}
	switch of.base {
	case Kumiki:
		return append([]string{o.KumikiBinary, "scheduler"}, serve...), nil
	case Upstream:
		return append([]string{o.UpstreamBinary}, serve...), nil
	case CreateOnly:
		return nil, nil // nobody is started
	case Null:
		line := []string{o.KumikiBinary, "bench", "null", "--kubeconfig=" + kubeconfig,
			fmt.Sprintf("--qps=%g", o.QPS), fmt.Sprintf("--burst=%d", o.Burst)}
		if o.play != "" {
			line = append(line, "--play="+o.play)
		}
		if o.ProfileDir != "" {
			line = append(line, "--cpuprofile="+filepath.Join(o.ProfileDir, Null+".pprof"))
		}
		return line, nil
	}
	if strings.ContainsRune(of.base, filepath.Separator) {
		return append([]string{of.base}, serve...), nil
	}
	return nil, fmt.Errorf("scheduler %q is unknown; there are %s, %s, %s, and paths of programs that take kube-scheduler's flags", name, Kumiki, Upstream, Null)
}

// startScheduler starts a scheduler's process, which ends with ctx or with this process.
func startScheduler(ctx context.Context, o Options, name, kubeconfig, dir string) (*scheduler, error) {
	s := &scheduler{name: name, log: filepath.Join(dir, fileName(name)+".log"), ended: make(chan struct{})}
	var err error
	if name == Null {
		s.ready = make(chan struct{})
	} else if s.port, err = freePort(); err != nil {
		return nil, err
	}
	line, err := commandLine(o, name, kubeconfig, dir, s.port)
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
		return nil, fmt.Errorf("%s starts nobody; it can be measured with a workload only", name)
	}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	s.cmd.Stderr = log
	s.cmd.Env = environment(goLimits())
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 20 * time.Second
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() {
		s.follow(stdout)
		s.exit = s.cmd.Wait()
		log.Close()
		close(s.ended)
	}()
	return s, nil
}

// follow reads what the process prints until it prints no more.
func (s *scheduler) follow(stdout io.Reader) {
	for scan := bufio.NewScanner(stdout); scan.Scan(); {
		if s.ready != nil && scan.Text() == nullReady {
			close(s.ready)
		}
	}
}

// freePort asks the kernel for a port that nobody has.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// connect makes the client that asks the scheduler itself, as the user of a kubeconfig. The certificate was made by the
// scheduler for itself a moment ago and is not checked.
func (s *scheduler) connect(kubeconfig string) error {
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
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: own.Certificates, GetClientCertificate: own.GetClientCertificate},
	}}
	return nil
}

// waitReady returns when the scheduler knows the cluster and shows its metrics to us, which it does when it has learnt from
// the API server whom to believe: some moments later.
func (s *scheduler) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if s.ready == nil && s.get(ctx, "/readyz", io.Discard) == nil && s.get(ctx, "/metrics", io.Discard) == nil {
			return nil
		}
		select {
		case <-s.ready:
			return nil
		case <-s.ended:
			return fmt.Errorf("%s ended before it was ready: %v\n%s", s.name, s.exit, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready: %w\n%s", s.name, ctx.Err(), s.lastWords())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// get writes the answer to a request.
func (s *scheduler) get(ctx context.Context, path string, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", s.port, path), nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", path, s.name, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// profile writes a CPU profile of the next seconds into a directory, and then where memory was allocated since the start;
// a scheduler that serves nothing has none.
func (s *scheduler) profile(ctx context.Context, dir string, seconds int) error {
	if s.port == 0 {
		return nil
	}
	for _, p := range []struct{ file, path string }{
		{fileName(s.name) + ".pprof", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds)},
		{fileName(s.name) + ".allocs.pprof", "/debug/pprof/allocs"},
	} {
		f, err := os.Create(filepath.Join(dir, p.file))
		if err != nil {
			return err
		}
		if err := errors.Join(s.get(ctx, p.path, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lastWords is the end of what the process said.
func (s *scheduler) lastWords() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// close ends the process and waits for it.
func (s *scheduler) close() {
	s.stop()
	<-s.ended
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// environment returns the environment of this program with the limits in place of its own.
func environment(l GoLimits) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"}, name)
	})
	return append(env, fmt.Sprintf("GOMAXPROCS=%d", l.Procs), fmt.Sprintf("GOGC=%d", l.GCPercent))
}

// nullReady is the line that tells that the null binder knows nodes and pods.
const nullReady = "ready"
