// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
)

// Options say how to run a cluster.
type Options struct {
	// DataDir keeps the cluster; empty means a temporary one that is removed.
	DataDir string
	// Settings give the upstream programs' flags; Port is filled in here.
	Settings roles.Settings
	// NodesArgs are the flags of the role nodes.
	NodesArgs []string
	// NodeSpec, if not nil, is kept in the data directory and handed to the role
	// nodes as --node-spec: the file it came from may go, a restart needs it.
	NodeSpec []byte
	// KubeconfigOut, if set, gets a copy of the admin kubeconfig.
	KubeconfigOut string
	// RestartChildren starts a child again when it ended on its own.
	RestartChildren bool
	// ReadyTimeout bounds the time to readiness of each role.
	ReadyTimeout time.Duration
	// Progress gets lines for people.
	Progress io.Writer
}

// Ready is the line that start prints on stdout, as JSON, when the cluster is
// usable: nodes are schedulable and pods can be created.
type Ready struct {
	Ready               bool    `json:"ready"`
	Kubeconfig          string  `json:"kubeconfig"`
	SchedulerKubeconfig string  `json:"schedulerKubeconfig"`
	ViewerKubeconfig    string  `json:"viewerKubeconfig"`
	Server              string  `json:"server"`
	DataDir             string  `json:"dataDir"`
	PID                 int     `json:"pid"`
	Nodes               int     `json:"nodes"`
	StartupSeconds      float64 `json:"startupSeconds"`
}

// Supervisor runs the children of one cluster.
type Supervisor struct {
	opts    Options
	dir     *dataDir
	spawner *spawner
	probe   *probe

	mu sync.Mutex
	// children: role -> its current (or last) process.
	children map[string]*child
	// closing is set once, when the cluster goes down: ended children are then
	// expected and nothing is started any more.
	closing bool
	// nodesReady is closed when the current process of role nodes has said how
	// many nodes it made schedulable.
	nodesReady chan struct{}
	nodeCount  int
	// failed gets the first child that ended on its own.
	failed chan string
}

// ErrChildEnded says that a child process ended while it was waited for.
var ErrChildEnded = errors.New("process ended")

// New opens the data directory and prepares certificates. Close must be called.
func New(opts Options) (*Supervisor, error) {
	dir, err := openDataDir(opts.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		opts:     opts,
		dir:      dir,
		spawner:  newSpawner(),
		children: map[string]*child{},
		failed:   make(chan string, 1),
	}
	if err := dir.prepare(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err := s.keepNodeSpec(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	s.opts.Settings.Port = dir.state.Port
	if s.opts.Settings.Fsync = s.opts.Settings.Fsync && !dir.temporary; s.opts.Progress == nil {
		s.opts.Progress = io.Discard
	}
	if s.probe, err = newProbe(dir.Kubeconfig(Admin)); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return s, nil
}

func (s *Supervisor) keepNodeSpec() error {
	if s.opts.NodeSpec == nil {
		return nil
	}
	if err := os.WriteFile(s.dir.file(nodeSpecFile), s.opts.NodeSpec, 0o600); err != nil {
		return fmt.Errorf("keep node spec: %w", err)
	}
	// Relative: the data directory is the child's working directory.
	s.opts.NodesArgs = append(slices.Clone(s.opts.NodesArgs), "--node-spec="+nodeSpecFile)
	return nil
}

// DataDir is the absolute path of the data directory.
func (s *Supervisor) DataDir() string { return s.dir.path }

// Failed gives the name of the first child that ended on its own.
func (s *Supervisor) Failed() <-chan string { return s.failed }

func (s *Supervisor) say(format string, args ...any) {
	fmt.Fprintf(s.opts.Progress, format+"\n", args...)
}

// Start brings all roles up and returns when the cluster is ready.
func (s *Supervisor) Start(ctx context.Context) (Ready, error) {
	begin := time.Now()
	s.say("data directory %s, API server %s", s.dir.path, s.dir.Server())
	// etcd and the API server start side by side: the API server retries its
	// connection, and most of its start-up does not need the store.
	for _, role := range []string{roles.Etcd, roles.APIServer} {
		if err := s.spawn(role); err != nil {
			return Ready{}, err
		}
	}
	if err := s.waitReady(ctx, roles.APIServer); err != nil {
		return Ready{}, err
	}
	s.say("API server answers after %.1fs", time.Since(begin).Seconds())
	for _, role := range []string{roles.Controllers, roles.Nodes} {
		if err := s.spawn(role); err != nil {
			return Ready{}, err
		}
	}
	if err := s.probe.grantViewer(ctx); err != nil {
		return Ready{}, err
	}
	for _, role := range []string{roles.Controllers, roles.Nodes} {
		if err := s.waitReady(ctx, role); err != nil {
			return Ready{}, err
		}
		s.say("%s ready after %.1fs", role, time.Since(begin).Seconds())
	}
	if err := s.writeKubeconfigOut(); err != nil {
		return Ready{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Ready{
		Ready:               true,
		Kubeconfig:          s.dir.Kubeconfig(Admin),
		SchedulerKubeconfig: s.dir.Kubeconfig(Scheduler),
		ViewerKubeconfig:    s.dir.Kubeconfig(Viewer),
		Server:              s.dir.Server(),
		DataDir:             s.dir.path,
		PID:                 os.Getpid(),
		Nodes:               s.nodeCount,
		StartupSeconds:      float64(time.Since(begin).Milliseconds()) / 1000,
	}, nil
}

func (s *Supervisor) writeKubeconfigOut() error {
	if s.opts.KubeconfigOut == "" {
		return nil
	}
	raw, err := os.ReadFile(s.dir.Kubeconfig(Admin))
	if err != nil {
		return fmt.Errorf("copy kubeconfig: %w", err)
	}
	if err := os.WriteFile(s.opts.KubeconfigOut, raw, 0o600); err != nil {
		return fmt.Errorf("copy kubeconfig: %w", err)
	}
	return nil
}

// args are the flags of a role's program.
func (s *Supervisor) args(role string) []string {
	switch role {
	case roles.Etcd:
		return roles.EtcdArgs(s.opts.Settings)
	case roles.APIServer:
		return roles.APIServerArgs(s.opts.Settings)
	case roles.Controllers:
		return roles.ControllersArgs(s.opts.Settings)
	case roles.Nodes:
		return append([]string{"--kubeconfig=" + s.dir.Kubeconfig(roles.Nodes)}, s.opts.NodesArgs...)
	}
	panic(fmt.Sprintf("no flags for role %q", role))
}

// spawn starts a role's process. The role must not have a living one.
func (s *Supervisor) spawn(role string) error {
	if role == roles.Etcd {
		if err := s.removeSockets(); err != nil {
			return err
		}
	}
	var stdout *readySignal
	if role == roles.Nodes {
		stdout = newReadySignal(s.nodesAreReady)
	}
	cmd, log, err := command(s.dir.path, role, s.args(role), stdout.writer())
	if err != nil {
		return err
	}
	defer log.Close()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return fmt.Errorf("start %s: the cluster is going down", role)
	}
	if role == roles.Nodes {
		s.nodesReady = make(chan struct{})
	}
	if err := s.spawner.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", role, err)
	}
	c := &child{role: role, cmd: cmd, phase: Running, ended: make(chan struct{})}
	s.children[role] = c
	go s.wait(c)
	return nil
}

// removeSockets clears what a killed etcd left; it would not listen otherwise.
func (s *Supervisor) removeSockets() error {
	for _, name := range roles.SocketFiles() {
		if err := os.Remove(s.dir.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove socket of %s: %w", roles.Etcd, err)
		}
	}
	return nil
}

// wait collects a child and reports an exit that was not requested.
func (s *Supervisor) wait(c *child) {
	// The error repeats what ProcessState says.
	_ = c.cmd.Wait()
	s.mu.Lock()
	c.exit = c.cmd.ProcessState.String()
	unexpected := c.phase != Killed && !s.closing
	if unexpected {
		c.phase = Exited
	}
	closing := s.closing
	s.mu.Unlock()
	close(c.ended)
	if !unexpected {
		return
	}
	s.say("%s ended on its own: %s (log: %s)", c.role, c.exit, s.dir.file(logDir, c.role+".log"))
	select {
	case s.failed <- c.role:
	default:
	}
	if s.opts.RestartChildren && !closing {
		// A child that dies at once must not keep the machine busy.
		time.Sleep(time.Second)
		if err := s.spawn(c.role); err != nil {
			s.say("restart %s: %v", c.role, err)
		}
	}
}

func (s *Supervisor) nodesAreReady(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodeCount = count
	select {
	case <-s.nodesReady:
	default:
		close(s.nodesReady)
	}
}

func (s *Supervisor) child(role string) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children[role]
}

// waitReady blocks until the role does its work, its process ends, or time is
// up; the error of the last two carries the end of the log.
func (s *Supervisor) waitReady(ctx context.Context, role string) error {
	c := s.child(role)
	ctx, stop := context.WithTimeout(ctx, s.opts.ReadyTimeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready := make(chan error, 1)
	go func() { ready <- s.ready(ctx, role) }()
	// A role cannot become ready without those before it.
	for _, before := range roles.All() {
		if before == role {
			break
		}
		other := s.child(before)
		go func() {
			select {
			case <-other.ended:
				cancel(fmt.Errorf("%s, which it needs: %w%s", before, ErrChildEnded, s.logTail(before)))
			case <-ctx.Done():
			}
		}()
	}
	select {
	case err := <-ready:
		if err != nil {
			return fmt.Errorf("wait for %s: %w%s", role, err, s.logTail(role))
		}
		return nil
	case <-c.ended:
		return fmt.Errorf("wait for %s: %w: %s%s", role, ErrChildEnded, c.exit, s.logTail(role))
	}
}

func (s *Supervisor) ready(ctx context.Context, role string) error {
	switch role {
	case roles.Etcd:
		return s.probe.etcd(ctx)
	case roles.APIServer:
		return s.probe.apiServer(ctx)
	case roles.Controllers:
		return s.probe.controllers(ctx)
	}
	s.mu.Lock()
	ready := s.nodesReady
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// logTailBytes is how much of a log an error shows.
const logTailBytes = 2000

func (s *Supervisor) logTail(role string) string {
	raw, err := os.ReadFile(s.dir.file(logDir, role+".log"))
	if err != nil || len(raw) == 0 {
		return ""
	}
	if len(raw) > logTailBytes {
		raw = raw[len(raw)-logTailBytes:]
	}
	return "\nlast lines of its log:\n" + strings.TrimSpace(string(raw))
}

// stopGrace is how long etcd may take to close its files when the data
// directory is kept.
const stopGrace = 5 * time.Second

// Close ends all children, last role first, and cleans the data directory.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	order := roles.All()
	slices.Reverse(order)
	for _, role := range order {
		c := s.child(role)
		if c == nil {
			continue
		}
		// All state is in etcd; the others lose nothing by SIGKILL, and even
		// etcd does not when its files are removed next.
		if role == roles.Etcd && !s.dir.temporary {
			_ = c.cmd.Process.Signal(syscall.SIGCONT)
			_ = c.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-c.ended:
				continue
			case <-time.After(stopGrace):
			}
		}
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	err := s.dir.Close()
	if s.opts.KubeconfigOut != "" {
		// It names a server that is gone; a later start writes it anew.
		if rm := os.Remove(s.opts.KubeconfigOut); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	}
	return err
}
