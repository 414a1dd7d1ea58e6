// The flags: flip with a preview, undo, a lost race, the kill switch, and a trip.

import { api, assert, check, equal, open, picture, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "flags");
  const flag = (name) => page.locator("article", { has: page.locator("h2", { hasText: name }) });
  await flag("mover").waitFor();
  equal(await page.locator("article h2").allTextContents(), ["mover", "reports", "mobile"], "the order");

  // Flip.
  const edit = flag("reports");
  await edit.getByLabel("Stage of reports").selectOption("translate");
  await edit.locator(".preview", { hasText: "Moves about 100 % of client `reports`'s calls to the new side, on 2 routes." }).waitFor();
  await edit.getByLabel("Why").fill("ticket 7");
  await edit.getByLabel("Who").fill("anna");
  await picture(page, "flags", 900);
  await check(page, "flags, edited");
  equal((await api("GET", "flags/reports")).stage, "shadow", "a preview changes nothing");
  // Its callers have no key, so no part of them can be chosen.
  await edit.getByLabel("Percentage of reports", { exact: true }).fill("25");
  await edit.locator(".preview.wrong", { hasText: "there is no key for `reports`" }).waitFor();
  assert(await edit.getByRole("button", { name: "Apply" }).isDisabled(), "what is not possible cannot be applied");
  await edit.getByLabel("Percentage of reports", { exact: true }).fill("");
  await edit.locator(".preview.wrong", { hasText: "Enter a percentage" }).waitFor();
  assert(await edit.getByRole("button", { name: "Apply" }).isDisabled(), "no percentage is not 0 %");
  await edit.getByLabel("Percentage of reports", { exact: true }).fill("100");
  await edit.locator(".preview", { hasText: "Moves about 100 %" }).waitFor();
  await edit.getByRole("button", { name: "Apply" }).click();
  await edit.locator(".who", { hasText: "anna" }).waitFor();
  const flipped = await api("GET", "flags/reports");
  equal([flipped.stage, flipped.flipped.who, flipped.flipped.why], ["translate", "anna", "ticket 7"], "the flip");

  // Undo.
  await edit.getByRole("button", { name: "Undo reports" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
  await edit.locator("header .stage.shadow").waitFor();
  equal((await api("GET", "flags/reports")).stage, "shadow", "the undo");

  // A lost race: another person was faster, and wins.
  await edit.getByLabel("Stage of reports").selectOption("translate");
  await edit.locator(".preview", { hasText: "Moves about 100 %" }).waitFor();
  await api("PUT", "flags/reports", { stage: "verify", percent: 100, who: "ben", why: "ticket 8" });
  await edit.getByRole("button", { name: "Apply" }).click();
  await edit.getByRole("alert").waitFor();
  const told = await edit.getByRole("alert").textContent();
  assert(/Your change was not applied/.test(told) && /ben \(ticket 8\)/.test(told) && /verify 100 %/.test(told), told);
  equal((await api("GET", "flags/reports")).stage, "verify", "nothing is overwritten");
  await picture(page, "lost-race", 860);
  await check(page, "flags, lost race");
  await edit.getByRole("button", { name: "Apply to the new version" }).click();
  await edit.locator("header .stage.translate").waitFor();

  // The history has all of this.
  await edit.getByRole("button", { name: "History reports" }).click();
  const history = page.getByRole("dialog");
  await history.getByRole("row").nth(4).waitFor();
  assert((await history.textContent()).includes("ticket 8"), "the history has the reason");
  await check(page, "history");
  await page.keyboard.press("Escape");
  await history.waitFor({ state: "detached" });

  // The guard trips while the page is open.
  const mobile = flag("mobile");
  await mobile.locator(".badge.error", { hasText: "tripped" }).waitFor({ timeout: 60000 });
  await check(page, "flags, tripped");

  // The last change is undone in the history of all changes, which stays open and shows the message. Nothing
  // changes a flag meanwhile: the only guard has tripped.
  await page.getByRole("button", { name: "All changes" }).click();
  const changes = page.getByRole("dialog", { name: "History of all changes" });
  await changes.getByRole("button", { name: "Undo the last change" }).click();
  await page.getByRole("dialog", { name: "Undo the last change?" }).getByRole("button", { name: "Undo" }).click();
  await changes.getByRole("status").getByText("Undone.").waitFor();
  await changes.getByRole("row").nth(1).filter({ hasText: "reports undone" }).waitFor();
  await check(page, "history, undone");
  await changes.getByRole("button", { name: "Close" }).click();
  await changes.waitFor({ state: "detached" });
  equal((await api("GET", "flags/reports")).stage, "verify", "the undo of the last change");
  equal(await page.locator("body > #toasts").count(), 1, "the place of messages after the dialogs");

  // A person re-arms the flag.
  await mobile.getByRole("button", { name: "Re-arm mobile" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Re-arm" }).click();
  await mobile.locator(".badge.error").waitFor({ state: "detached" });

  // The kill switch asks first, and wants a reason.
  await page.getByRole("button", { name: "Kill switch" }).click();
  const kill = page.getByRole("dialog");
  await kill.getByRole("button", { name: "Cancel" }).click();
  equal((await api("GET", "flags")).kill, null, "a cancelled kill switch");
  await page.getByRole("button", { name: "Kill switch" }).click();
  await kill.getByRole("button", { name: "Turn on" }).click();
  equal((await api("GET", "flags")).kill, null, "a kill switch without a reason");
  await kill.getByLabel("Why").fill("   ");
  await kill.getByRole("button", { name: "Turn on" }).click();
  equal((await api("GET", "flags")).kill, null, "a kill switch with a blank reason");
  await kill.getByLabel("Why").fill("errors at checkout");
  await check(page, "kill switch");
  await kill.getByRole("button", { name: "Turn on" }).click();
  await page.locator(".killed", { hasText: "errors at checkout" }).waitFor();
  equal((await api("GET", "flags")).kill.who, "anna", "the kill switch");
  await page.locator(".killed").getByRole("button", { name: "Turn off" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Turn off" }).click();
  await page.locator(".killed").waitFor({ state: "detached" });
  equal((await api("GET", "flags")).kill, null, "the kill switch is off");
});
