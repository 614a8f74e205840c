// SPDX-License-Identifier: Apache-2.0

package testcluster

import "syscall"

// ChildAttributes returns the attributes of a child process: Ctrl-C at the terminal reaches only its parent, which then
// ends the child in order; and the child gets a signal when its parent dies, however that happens.
func ChildAttributes(atDeathOfParent syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atDeathOfParent}
}
