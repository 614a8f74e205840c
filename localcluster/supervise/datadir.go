// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/kumiki-scheduler/kumiki/localcluster/pki"
	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
)

// Files of a data directory that are not a child's.
const (
	stateFile    = "cluster.json"
	nodeSpecFile = "nodes.yaml"
	controlSock  = "control.sock"
	lockFile     = "lock"
	logDir       = "logs"
	tempPrefix   = "kumiki-localcluster-"
)

// Users that get a kubeconfig below roles.KubeconfigDir, named as here.
const (
	// Admin may do everything.
	Admin = "admin"
	// Scheduler is user system:kube-scheduler, bound to the role of that name
	// by the API server's own bootstrap policy.
	Scheduler = "scheduler"
	// Viewer may read everything but secrets' neighbours: see viewerRules.
	Viewer = "viewer"

	viewerUser = "kumiki:viewer"
)

// ErrInUse says that another supervisor holds the data directory.
var ErrInUse = errors.New("data directory is in use by a running cluster")

// state is what must be the same after a restart of the cluster or of a child.
type state struct {
	// Port of the API server; kubeconfig files and clients hold on to it.
	Port int `json:"port"`
}

// dataDir is a locked data directory.
type dataDir struct {
	path string
	// temporary directories are removed on Close.
	temporary bool
	lock      *os.File
	state     state
}

// openDataDir makes (or reopens) and locks the directory. An empty path makes a
// temporary one, after sweeping those whose supervisor was killed.
func openDataDir(path string) (*dataDir, error) {
	d := &dataDir{path: path}
	if path == "" {
		sweepTemporary()
		tmp, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return nil, fmt.Errorf("make temporary data directory: %w", err)
		}
		d.path, d.temporary = tmp, true
	}
	abs, err := filepath.Abs(d.path)
	if err != nil {
		return nil, fmt.Errorf("resolve data directory %s: %w", d.path, err)
	}
	d.path = abs
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	if d.lock, err = lockDir(d.path); err != nil {
		return nil, err
	}
	return d, nil
}

func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	return f, nil
}

// sweepTemporary removes temporary directories that no process locks: a supervisor that is
// killed with SIGKILL leaves them.
func sweepTemporary() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, dir := range dirs {
		// A directory without a state file is just being made by someone else.
		if _, err := os.Stat(filepath.Join(dir, stateFile)); err != nil {
			continue
		}
		if lock, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

// Close removes what the running cluster kept in the directory, and a temporary
// directory as a whole.
func (d *dataDir) Close() error {
	defer d.lock.Close()
	if d.temporary {
		return os.RemoveAll(d.path)
	}
	for _, name := range append(roles.SocketFiles(), controlSock, lockFile) {
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean data directory: %w", err)
		}
	}
	return nil
}

func (d *dataDir) file(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Kubeconfig is the path of a user's kubeconfig.
func (d *dataDir) Kubeconfig(user string) string { return d.file(roles.KubeconfigDir, user) }

// prepare loads the state and certificates, or makes them.
func (d *dataDir) prepare() error {
	for _, sub := range []string{roles.PKIDir, roles.KubeconfigDir, logDir} {
		if err := os.MkdirAll(d.file(sub), 0o700); err != nil {
			return fmt.Errorf("prepare data directory: %w", err)
		}
	}
	raw, err := os.ReadFile(d.file(stateFile))
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &d.state); err != nil {
			return fmt.Errorf("read %s: %w", stateFile, err)
		}
		if d.state.Port == 0 {
			return fmt.Errorf("read %s: no port", stateFile)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", stateFile, err)
	}
	if d.state.Port, err = freePort(); err != nil {
		return err
	}
	if err := d.writeCertificates(); err != nil {
		return err
	}
	// The state file is written last: a directory that has one is complete.
	raw, err = json.Marshal(d.state)
	if err != nil {
		return fmt.Errorf("encode %s: %w", stateFile, err)
	}
	if err := os.WriteFile(d.file(stateFile), raw, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", stateFile, err)
	}
	return nil
}

// Server is the URL of the API server.
func (d *dataDir) Server() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(d.state.Port))
}

func (d *dataDir) writeCertificates() error {
	dir := d.file(roles.PKIDir)
	ca, err := pki.NewAuthority("kumiki-localcluster-ca")
	if err != nil {
		return err
	}
	if err := ca.Write(dir, "ca"); err != nil {
		return err
	}
	serving, err := ca.Server("kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)})
	if err != nil {
		return err
	}
	if err := serving.Write(dir, "apiserver"); err != nil {
		return err
	}
	if err := writeFrontProxy(dir); err != nil {
		return err
	}
	if err := pki.WriteServiceAccountKeys(dir); err != nil {
		return err
	}
	users := []struct{ file, user, group string }{
		{Admin, "kubernetes-admin", "system:masters"},
		{Scheduler, "system:kube-scheduler", ""},
		{Viewer, viewerUser, ""},
		{roles.Controllers, "system:kube-controller-manager", ""},
		// All kubelets in one client: priority and fairness would throttle it
		// as a single user, so it is exempt like an administrator.
		{roles.Nodes, "kumiki:nodes", "system:masters"},
	}
	for _, u := range users {
		var groups []string
		if u.group != "" {
			groups = []string{u.group}
		}
		pair, err := ca.Client(u.user, groups...)
		if err != nil {
			return err
		}
		config, err := pki.Kubeconfig(d.Server(), ca.CertPEM, u.file, pair)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.Kubeconfig(u.file), config, 0o600); err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", u.file, err)
		}
	}
	return nil
}

// writeFrontProxy makes the second authority that aggregated API servers ask
// for; it must not be the one that signs users.
func writeFrontProxy(dir string) error {
	ca, err := pki.NewAuthority("kumiki-localcluster-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := ca.Write(dir, "front-proxy-ca"); err != nil {
		return err
	}
	client, err := ca.Client("front-proxy-client")
	if err != nil {
		return err
	}
	return client.Write(dir, "front-proxy-client")
}

// The ports come from below the range that Linux gives to outgoing connections
// (32768 and up): otherwise any connection could take the port of a killed API
// server before it is restarted.
const (
	firstPort = 20000
	lastPort  = 32000
)

func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port between %d and %d on 127.0.0.1: all tried are taken", firstPort, lastPort)
}
