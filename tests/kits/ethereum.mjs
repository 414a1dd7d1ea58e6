// Calls every operation of the kit with ethers, and prints the results as JSON. Times and hashes of blocks are left out,
// because they differ between two nodes. Without a cache, a nonce is never an old one.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { JsonRpcProvider, Wallet, parseEther, toQuantity } = require('ethers');

const provider = new JsonRpcProvider(url, undefined, { batchMaxCount: 10, cacheTimeout: -1, pollingInterval: 50 });
const results = {};
const plain = (key, value) => (typeof value === 'bigint' ? value.toString() : value);

async function call(name, body) {
  try {
    results[name] = JSON.parse(JSON.stringify((await body()) ?? null, plain));
  } catch (error) {
    results[name] = { error: error.code, server: error.info?.error ?? error.error ?? error.shortMessage };
  }
}

await call('chainId', async () => (await provider.getNetwork()).chainId);
await call('blockNumber', () => provider.getBlockNumber());
await call('syncing', () => provider.send('eth_syncing', []));
await call('clientVersion', () => provider.send('web3_clientVersion', []));
await call('netVersion', () => provider.send('net_version', []));
await call('accounts', () => provider.send('eth_accounts', []));
const [first, second] = results.accounts;
await call('gasPrice', () => provider.send('eth_gasPrice', []));
await call('feeData', () => provider.getFeeData());
await call('feeHistory', () => provider.send('eth_feeHistory', ['0x1', 'latest', [25, 75]]));
await call('blobBaseFee', () => provider.send('eth_blobBaseFee', []));
await call('balance', () => provider.getBalance(first));
await call('balanceAtBlock', () => provider.getBalance(first, 0));
await call('nonce', () => provider.getTransactionCount(first));
await call('code', () => provider.getCode(first));
await call('storage', () => provider.getStorage(first, 0));
const slots = [`0x${'00'.repeat(32)}`, `0x${'01'.repeat(32)}`];
await call('proof', () => provider.send('eth_getProof', [first, slots, 'latest']));
await call('proofOfAccount', () => provider.send('eth_getProof', [first, [], '0x0']));
await call('blockMissing', () => provider.getBlock(999999));
await call('transactionMissing', () => provider.getTransaction(`0x${'11'.repeat(32)}`));
await call('receiptMissing', () => provider.getTransactionReceipt(`0x${'11'.repeat(32)}`));
await call('countMissing', () => provider.send('eth_getBlockTransactionCountByHash', [`0x${'11'.repeat(32)}`]));
await call('blockTransactionMissing', () => provider.send('eth_getTransactionByBlockHashAndIndex', [`0x${'11'.repeat(32)}`, '0x0']));

const signer = await provider.getSigner(0);
let sent;
await call('send', async () => {
  sent = await signer.sendTransaction({ to: second, value: parseEther('1') });
  return (await sent.wait()).status;
});
await call('receipt', async () => (await provider.getTransactionReceipt(sent.hash)).gasUsed);
await call('transaction', async () => (await provider.getTransaction(sent.hash)).value);
await call('block', async () => (await provider.getBlock(1)).transactions.length);
await call('blockFull', async () => (await provider.getBlock(1, true)).prefetchedTransactions.length);
await call('blockByHash', async () => (await provider.getBlock((await provider.getBlock(1)).hash)).number);
await call('blockCount', () => provider.send('eth_getBlockTransactionCountByNumber', ['0x1']));
await call('blockTransaction', async () => (await provider.send('eth_getTransactionByBlockNumberAndIndex', ['0x1', '0x0'])).hash === sent.hash);
await call('byBlockHash', async () => {
  const { hash } = await provider.getBlock(1);
  const count = await provider.send('eth_getBlockTransactionCountByHash', [hash]);
  return [count, (await provider.send('eth_getTransactionByBlockHashAndIndex', [hash, '0x0'])).hash === sent.hash];
});
await call('blockReceipts', async () => (await provider.send('eth_getBlockReceipts', ['0x1'])).length);
await call('raw', async () => {
  const wallet = new Wallet('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80', provider);
  const raw = await wallet.signTransaction({
    to: second, value: 1n, nonce: await provider.getTransactionCount(first), chainId: results.chainId, gasLimit: 21000n,
    gasPrice: parseEther('0.000000005'), type: 0,
  });
  return (await (await provider.broadcastTransaction(raw)).wait()).status;
});
await call('rawBad', () => provider.send('eth_sendRawTransaction', ['0x00']));
await call('call', () => provider.call({ to: first, data: '0x' }));
await call('callReverts', () => provider.call({ data: '0x60006000fd' }));
await call('estimate', () => provider.estimateGas({ to: first, value: 1n, from: second }));
await call('estimateFails', () => provider.send('eth_estimateGas', [{ to: first, from: second, value: toQuantity(10n ** 30n) }]));
await call('logs', () => provider.getLogs({ fromBlock: 0, toBlock: 'latest' }));

console.log(JSON.stringify(results, null, 1));
process.exit(0);
