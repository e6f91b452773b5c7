// Command pretend-gpu-plugin makes a kubelet believe that its machine has the 8 GPUs of a p5.48xlarge.
//
// It speaks the kubelet's own device-plugin protocol, so that the real Topology Manager decides about islands;
// there is no GPU behind it. With --remove-pods it does the other thing that a pretended machine needs: it ends
// all pods of a container runtime when the machine is "switched off".
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// version is what `pretend-gpu-plugin --version` prints; the build sets it.
var version = "dev"

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	pluginDir := flag.String("plugin-dir", dp.DevicePluginPath, "the kubelet's folder of device plugins")
	pretendRoot := flag.String("pretend-root", "", "folder with the pretended PCI tree, mounted into containers that get GPUs")
	removal := flag.String("remove-pods", "", "end all pods of the container runtime behind this socket, and exit")
	timeout := flag.Duration("timeout", 30*time.Second, "longest time for --remove-pods")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return nil
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see --help", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if *removal != "" {
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		return removePods(ctx, *removal)
	}
	if info, err := os.Stat(*pluginDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--plugin-dir %s: not a folder; the kubelet makes it under its --root-dir", *pluginDir)
	}
	return serve(ctx, filepath.Clean(*pluginDir), *pretendRoot)
}
