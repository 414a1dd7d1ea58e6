# deploy/release replaces VERSION and the checksums, and writes the result beside the other artefacts.
class Dualgauge < Formula
  desc "Migration proxy between legacy REST and JSON-RPC 2.0, client by client"
  homepage "https://github.com/dualgauge/dualgauge"
  url "https://github.com/dualgauge/dualgauge/releases/download/vVERSION/dualgauge-VERSION-source.tar.gz"
  sha256 "SHA256_OF_SOURCE"
  license "MIT"

  depends_on "rust" => :build

  # The program of the release. Other systems build it.
  resource "program" do
    on_linux do
      on_intel do
        url "https://github.com/dualgauge/dualgauge/releases/download/vVERSION/dualgauge-VERSION-x86_64-unknown-linux-gnu.tar.gz"
        sha256 "SHA256_OF_PROGRAM"
      end
    end
  end

  def install
    if OS.linux? && Hardware::CPU.intel?
      resource("program").stage do
        bin.install "dualgauge"
        doc.install "THIRD-PARTY.txt"
      end
    else
      system "cargo", "install", *std_cargo_args
    end
    generate_completions_from_executable(bin/"dualgauge", "completions")
    system bin/"dualgauge", "man", "--write", man1
    pkgetc.install "config/dualgauge.toml", "config/sqlite.toml", "config/flags.toml", "config/schema"
  end

  service do
    run [opt_bin/"dualgauge", "run", "--config", etc/"dualgauge/dualgauge.toml"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dualgauge --version")
    system bin/"dualgauge", "check", "--config", pkgetc/"dualgauge.toml"
  end
end
