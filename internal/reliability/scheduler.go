// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// The schedulers that can be judged.
const (
	Kumiki   = "kumiki"
	Upstream = "kube-scheduler"
)

// Program is a scheduler's binary.
type Program struct {
	Name string // Kumiki or Upstream
	Path string
}

func (p Program) command(args ...string) []string {
	if p.Name == Kumiki {
		return append([]string{p.Path, "scheduler"}, args...)
	}
	return append([]string{p.Path}, args...)
}

// Launch has the options of a scheduler's start.
type Launch struct {
	// Name distinguishes logs; empty means the program's name.
	Name string
	// Kubeconfig is how the API server is reached, perhaps through a proxy; empty means directly, as
	// system:kube-scheduler.
	Kubeconfig string
	// Config are further lines of the KubeSchedulerConfiguration.
	Config string
	// Env are further variables of the process.
	Env []string
	// DontWait returns before the scheduler answers.
	DontWait bool
	// Lease is how long the lease lasts; 0 means 4 s. It is to be renewed in three quarters of that.
	Lease time.Duration
	// MayDie is set if a scheduler may end because of the fault, for example if it loses its lease: it is restarted,
	// and that does not count as a failure.
	MayDie bool
}

// configuration is what every scheduler is started with: leases that a case can wait for, backoffs that end within
// a case.
const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: %s, renewDeadline: %s, retryPeriod: 500ms}
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
podMaxBackoffSeconds: 2
`

// Scheduler is a scheduler's process, which is restarted after an unrequested exit, as a kubelet would do.
type Scheduler struct {
	line   []string
	env    []string
	log    string // file with what it said, over all starts
	port   int
	client *http.Client
	mayDie bool // its end is not counted

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // of cmd; closed when it is gone
	wanted  bool          // it should run: its end is a death
	starts  int
	deaths  []string // how it ended at each unrequested exit
	closing bool
}

// restartDelay is the time until a scheduler is restarted.
const restartDelay = 500 * time.Millisecond

func newScheduler(p Program, l Launch, admin, dir string) (*Scheduler, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	lease := l.Lease
	if lease == 0 {
		lease = 4 * time.Second
	}
	file := filepath.Join(dir, l.Name+".yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(configuration, lease, lease*3/4, l.Kubeconfig)+l.Config), 0o600); err != nil {
		return nil, fmt.Errorf("configure %s: %w", p.Name, err)
	}
	s := &Scheduler{
		line: p.command("--config="+file, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "-v=2",
			"--authentication-kubeconfig="+l.Kubeconfig, "--authorization-kubeconfig="+l.Kubeconfig),
		env: append(os.Environ(), l.Env...), log: filepath.Join(dir, l.Name+".log"), port: port, mayDie: l.MayDie,
	}
	s.client, err = asUser(admin)
	return s, err
}

// asUser is a client that asks a scheduler as the user of a kubeconfig. The certificate of a scheduler was made by
// itself a moment ago and is not checked.
func asUser(kubeconfig string) (*http.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	own, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: own.Certificates, GetClientCertificate: own.GetClientCertificate},
	}}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Start starts the process if it does not run.
func (s *Scheduler) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	return s.start()
}

func (s *Scheduler) start() error {
	if s.running() || s.closing {
		return nil
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start scheduler: %w", err)
	}
	cmd := exec.Command(s.line[0], s.line[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := testcluster.Spawn(cmd); err != nil {
		return errors.Join(fmt.Errorf("start scheduler: %w", err), log.Close())
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	s.starts++
	go func() {
		exit := cmd.Wait()
		log.Close()
		s.mu.Lock()
		died := s.wanted && !s.closing
		if died && !s.mayDie {
			s.deaths = append(s.deaths, fmt.Sprintf("it ended with %v: %s", exit, s.cause()))
		}
		close(ended)
		s.mu.Unlock()
		if died {
			time.Sleep(restartDelay)
			s.mu.Lock()
			if s.wanted {
				_ = s.start()
			}
			s.mu.Unlock()
		}
	}()
	return nil
}

// running reports whether the process runs. It must be called with the lock held.
func (s *Scheduler) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Alive reports whether the process runs, stopped or not.
func (s *Scheduler) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running()
}

// Kill ends the process with SIGKILL and leaves it dead; it returns when the process is gone.
func (s *Scheduler) Kill() { s.end(syscall.SIGKILL) }

// Terminate asks the process to end, waits until it is gone, and leaves it so.
func (s *Scheduler) Terminate() { s.end(syscall.SIGTERM) }

// grace is how long a process may take to end after SIGTERM.
const grace = 30 * time.Second

func (s *Scheduler) end(how syscall.Signal) {
	s.mu.Lock()
	s.wanted = false
	if !s.running() {
		s.mu.Unlock()
		return
	}
	ended, process := s.ended, s.cmd.Process
	_ = process.Signal(how)
	s.mu.Unlock()
	_ = process.Signal(syscall.SIGCONT) // in case it was stopped
	select {
	case <-ended:
	case <-time.After(grace):
		_ = process.Kill()
		<-ended
	}
}

// Signal sends a signal and leaves what comes of it to the process; when that is its end, it counts as a death.
func (s *Scheduler) Signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		_ = s.cmd.Process.Signal(sig)
	}
}

// Restart ends the process with SIGKILL and starts it again.
func (s *Scheduler) Restart() error {
	s.Kill()
	return s.Start()
}

// Starts counts how often the process was started.
func (s *Scheduler) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Deaths returns how the process ended at each unrequested exit, without the first n.
func (s *Scheduler) Deaths(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.deaths[min(n, len(s.deaths)):]...)
}

// PID of the process, for /proc.
func (s *Scheduler) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Close ends the process for good.
func (s *Scheduler) Close() {
	s.Terminate()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.client.CloseIdleConnections()
}

// Get asks the scheduler itself, as an admin.
func (s *Scheduler) Get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", s.port, path), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return resp, nil
}

// Metrics reads /metrics: series as it stands there -> value.
func (s *Scheduler) Metrics(ctx context.Context) (map[string]float64, error) {
	resp, err := s.Get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		series, value, ok := cutLast(scan.Text(), " ")
		if !ok || strings.HasPrefix(series, "#") {
			continue
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			out[series] = f
		}
	}
	return out, scan.Err()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// WaitReady returns when the scheduler serves and says that it is ready: it leads or stands by, and knows the cluster.
func (s *Scheduler) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	return eventually(ctx, "the scheduler is ready", func() string {
		resp, err := s.Get(ctx, "/readyz")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return ""
	})
}

func (s *Scheduler) said() []string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return []string{err.Error()}
	}
	text = text[max(0, len(text)-1<<20):]
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// cause is the line of the log that says why the process died.
func (s *Scheduler) cause() string {
	lines := s.said()
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "panic:") || strings.HasPrefix(lines[i], "fatal error:") {
			return lines[i]
		}
	}
	return lines[len(lines)-1]
}
